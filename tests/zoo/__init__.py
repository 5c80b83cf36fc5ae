"""Wrong skips that others shipped, made again in a few lines each, and the generators that must find every one.

See ``README.md`` beside this file.
"""
