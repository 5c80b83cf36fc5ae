"""Sphinx's settings. Each is described at https://www.sphinx-doc.org/en/master/usage/configuration.html."""

from maven_build import version as version_of_the_package

project = "es_skipping"
author = "The es_skipping authors"
project_copyright = author
version = release = version_of_the_package()

extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6
suppress_warnings = ["misc.highlighting_failure"]  # requests to a server stand in blocks of JSON
highlight_language = "text"

html_theme = "furo"
html_title = f"es_skipping {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
