"""Builds the site, and fails on anything that Sphinx warns of: a dead link, a page outside the navigation.

python docs/website/build.py [--check] [build/site]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pages import ROOT, Site
from sphinx.cmd.build import build_main


def build(folder: Path, root: Path = ROOT, *, check: bool = False) -> int:
    """The exit code of Sphinx.

    Parameters
    ----------
    folder
        Where the site goes. The pages that Sphinx reads, and what it remembers of them, go beside it.
    root
        The checkout whose pages it shows.
    check
        Write no page, only look for dead links and the like: a third of the time.
    """
    pages, remembered = (folder.with_name(folder.name + suffix) for suffix in ("-pages", "-doctrees"))
    Site(pages, root).write()
    sys.path.insert(0, str(ROOT))  # for the configuration
    return build_main(
        [
            *("--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"),
            *("--builder", "dummy" if check else "html"),
            *("--conf-dir", str(Path(__file__).resolve().parent), "--doctree-dir", str(remembered)),
            *(str(pages), str(folder)),
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--check", action="store_true", help="write no page, only check")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose pages the site shows")
    given = parser.parse_args()
    sys.exit(build(given.folder.resolve(), given.root.resolve(), check=given.check))
