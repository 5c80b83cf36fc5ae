"""Objects of CSV of which the value of a column may depend on which other columns a query reads.

Of a column that nobody asked for Spark's CSV parser skips the text without parsing it, and takes a quote behind an
escape character for an escaped one, which it need not be: ``"",`` where a quote is escaped by another one, ``"\\\\",``
where it is escaped by a backslash. All that follows in the record is then cut elsewhere. Where that pair is nowhere in
an object, skipping and parsing agree; with another handling of unescaped quotes than the default they agree where no
quote is at all.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from es_skipping.spark.source import Source

__all__ = ["WHY", "doubtful_text", "files_with", "prunes_columns"]

WHY: Final = (
    "it holds escaped quotes, with which the value that Spark reads of a column of CSV can depend on the other columns "
    "that a query reads; with the reader option columnPruning=false, or the setting "
    "spark.sql.csv.parser.columnPruning.enabled=false, it does not"
)
_DEFAULT_HANDLING: Final = "STOP_AT_DELIMITER"
_SETTING: Final = "spark.sql.csv.parser.columnPruning.enabled"
_WIDE: Final = ("utf_16", "utf_32")
_SHIFTING: Final = ("iso2022", "utf_7", "hz")
"""Encodings in which two characters that follow each other may have something between them."""


def prunes_columns(options: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    """Whether a read of CSV parses the columns only that it needs.

    Parameters
    ----------
    options
        Of the reader, their names in lower case.
    settings
        Of the session.

    Examples
    --------
    >>> prunes_columns({}, {}), prunes_columns({"multiline": "true"}, {})
    (True, False)
    """
    if "columnpruning" in options:
        return options["columnpruning"].lower() != "false"
    return options.get("multiline", "").lower() != "true" and str(settings.get(_SETTING)).lower() != "false"


def doubtful_text(options: Mapping[str, str]) -> list[bytes] | None:
    """What must not be in an object: an escape character before a quote; nothing where nothing is quoted.

    Returns
    -------
    list of bytes or None
        Its bytes, in each byte order that the encoding may have; None where it cannot be looked for.

    Examples
    --------
    >>> doubtful_text({}), doubtful_text({"escape": '"'}), doubtful_text({"quote": ""})
    ([b'\\\\"'], [b'""'], [])
    >>> doubtful_text({"encoding": "UTF-16", "escape": "'"})
    [b'\\'\\x00"\\x00', b'\\x00\\'\\x00"']
    """
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    if not quote or quote == "\0":
        return []
    handling = options.get("unescapedquotehandling", _DEFAULT_HANDLING)
    text = (escape or "\0") + quote if handling.upper() == _DEFAULT_HANDLING else quote
    try:
        name = codecs.lookup(options.get("encoding") or options.get("charset") or "utf-8").name.replace("-", "_")
        if any(name.startswith(shifting) for shifting in _SHIFTING) or set(text) & set("\r\n"):
            return None
        orders = [f"{name}_le", f"{name}_be"] if name in _WIDE else [name]
        return [text.encode(order) for order in orders]
    except (LookupError, UnicodeError):
        return None


def files_with(source: Source, paths: Iterable[str], texts: Iterable[bytes]) -> list[str]:
    """Those of the files that hold one of the texts, as ``_metadata.file_path`` spells them."""
    from pyspark.sql import functions as F

    options = {name: source.options[name] for name in ("linesep", "encoding", "charset") if name in source.options}
    # Neither patterns nor partitions are to be found in these paths.
    lines = (
        source.df.sparkSession.read.format("text")
        .schema("value STRING")
        .options(**options, recursiveFileLookup="true", __globPaths__="false")
        .load(list(paths))
    )
    line = F.col("value").cast("binary")
    found = reduce(or_, (F.contains(line, F.lit(text)) for text in texts))
    return [row.file_path for row in lines.where(found).select("_metadata.file_path").distinct().collect()]
