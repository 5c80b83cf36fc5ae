"""Finds text objects with values that depend on more than the object and its reader; no index trusts them.

- Spark's CSV parser skips the text of a column that the query does not read. It then takes every quote after an
  escape character as escaped, which can be wrong: ``"",`` if a quote escapes a quote, ``"\\\\",`` if a backslash does.
  The rest of the record is then split differently. Without that pair of characters in an object, skipping and parsing
  agree. With a separator of several characters, or with a non-default handling of unescaped quotes, they agree only
  without any quote.
- A time of day that is read as a timestamp takes the day of the query.
- Under the legacy parser's policy, the century of a two-digit year changes as years pass.
- A header behind empty lines or comments is read as a row if a split ends before it.
- A line separator that overlaps itself, such as ``||`` in ``a|||b``, is found elsewhere by a split that begins in it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from es_skipping.lookup.built_with import reader_options
from es_skipping.lookup.value_settings import setting

if TYPE_CHECKING:
    from pyspark.sql import Column

    from es_skipping.build.source import Source

__all__ = [
    "Doubt",
    "doubts_of",
    "files_in_doubt",
    "has_short_year",
    "overlaps_itself",
    "prunes_columns",
    "quotes_in_doubt",
]

_QUOTES: Final = (
    "they hold escaped quotes, with which a CSV column's value can depend on the other columns that a query reads; "
    "to prevent this, set the reader option columnPruning=false, or "
    "spark.sql.csv.parser.columnPruning.enabled=false"
)
_DAY: Final = "they may hold a time without a date, which as a timestamp takes the day of the query"
_CENTURY: Final = "their pattern has a two-digit year, whose century the legacy parser takes from the day of the query"
_OVERLAPPING: Final = (
    "their lines end with {!r}, which can overlap itself, so that the lines depend on where a split begins"
)
_HEADER: Final = "their header follows empty lines or comments, so Spark can read it as a row"

_DEFAULT_HANDLING: Final = "STOP_AT_DELIMITER"
_WIDE: Final = ("utf_16", "utf_32")
_SHIFTING: Final = ("iso2022", "utf_7", "hz")
"""Encodings that may put bytes between two successive characters."""
_BLANK: Final = r"[\x00-\x20\x7f]"
_TIME: Final = "(?:[0-9]{1,2}:|T[0-9])"
"""The beginning of a value that is a time, as a regular expression for both Java and Python."""
_TIME_IN_TEXT: Final = rf"(?:{_BLANK}|\\[bfnrt])*{_TIME}|\\u00"
"""The same in JSON, which may escape blanks and other characters."""
_SHORT_YEAR: Final = re.compile("(?<![yY])[yY]{1,2}(?![yY])")


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason not to trust objects.

    Parameters
    ----------
    why
        A reason for people, about several objects.
    holds
        Whether a line makes its object doubtful; None if every object is doubtful.
    first
        Whether only the first line is tested.
    """

    why: str
    holds: Callable[[Column], Column] | None = None
    first: bool = False


def doubts_of(source: Source, types: Iterable[str]) -> list[Doubt]:
    """The checks that a dataset's objects must pass before an index trusts their values.

    Parameters
    ----------
    types
        The types of the columns to read.
    """
    options = reader_options(source.format, source.options)
    codec = _codec(options)
    narrow = codec is not None and codec not in _WIDE
    found = []
    separator = options.get("linesep", "")
    if "true" not in (options.get("multiline"), options.get("wholetext")) and overlaps_itself(separator, codec):
        found.append(Doubt(_OVERLAPPING.format(separator)))
    if source.format == "csv":
        if prunes_columns(options, source.settings):
            texts = quotes_in_doubt(options)
            if texts != []:
                found.append(Doubt(_QUOTES, None if texts is None else lambda line: _holds_one(line, texts)))
        if options.get("header") == "true":
            comment = options.get("comment") or "\0"
            found.append(
                Doubt(_HEADER, (lambda line: _is_passed_over(line, comment)) if narrow else None, first=narrow)
            )
    if source.format in ("csv", "json") and has_short_year(
        (options.get(name, "") for name in ("dateformat", "timestampformat", "timestampntzformat")), source.settings
    ):
        found.append(Doubt(_CENTURY))
    if source.format in ("csv", "json") and any("timestamp" in name.replace("timestamp_ntz", "") for name in types):
        quote = options.get("quote", '"')
        plain = narrow and not (quote.isalnum() or quote in ("+", "-", ":"))
        begins = rf"(?:^|{_literally(_separator(options))}|[^0-9A-Za-z:+\-\x00-\x20\x7f])"
        given = re.match(f"{_BLANK}*{_TIME}", options.get("emptyvalue", ""))
        found.append(Doubt(_DAY, (lambda line: line.rlike(begins + _TIME_IN_TEXT)) if plain and not given else None))
    return found


def has_short_year(patterns: Iterable[str], settings: Mapping[str, str]) -> bool:
    """Whether the century of a date or time pattern changes as years pass.

    Examples
    --------
    >>> legacy = {"spark.sql.legacy.timeParserPolicy": "LEGACY"}
    >>> has_short_year(["dd.MM.yy"], legacy), has_short_year(["dd.MM.yyyy"], legacy), has_short_year(["yy"], {})
    (True, False, False)
    """
    legacy = setting("spark.sql.legacy.timeParserPolicy", settings) == "LEGACY"
    return legacy and any(_SHORT_YEAR.search(pattern) for pattern in patterns)


def prunes_columns(options: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    """Whether a CSV read parses only the columns that it needs.

    Parameters
    ----------
    options
        The reader's options, with names in lower case.
    settings
        The session's settings.

    Examples
    --------
    >>> prunes_columns({}, {}), prunes_columns({"multiline": "true"}, {})
    (True, False)
    """
    options = reader_options("csv", options)
    if "columnpruning" in options:
        return options["columnpruning"] != "false"
    pruned = setting("spark.sql.csv.parser.columnPruning.enabled", settings) != "false"
    return pruned and options.get("multiline") != "true"


def quotes_in_doubt(options: Mapping[str, str]) -> list[bytes] | None:
    """The bytes that make a CSV object doubtful: an escape character before a quote; none if nothing is quoted.

    Returns
    -------
    list of bytes or None
        The bytes in each byte order that the encoding may have; None if they cannot be searched for.

    Examples
    --------
    >>> quotes_in_doubt({}), quotes_in_doubt({"escape": '"'}), quotes_in_doubt({"quote": ""})
    ([b'\\\\"'], [b'""'], [])
    >>> quotes_in_doubt({"encoding": "UTF-16", "escape": "'"})
    [b'\\'\\x00"\\x00', b'\\x00\\'\\x00"']
    """
    options = reader_options("csv", options)
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    if not quote or quote == "\0":
        return []
    handling = options.get("unescapedquotehandling", _DEFAULT_HANDLING).upper()
    simple = handling == _DEFAULT_HANDLING and len(_separator(options)) == 1
    text = (escape or "\0") + quote if simple else quote
    codec = _codec(options)
    if codec is None or set(text) & set("\r\n"):
        return None
    try:
        return [text.encode(order) for order in _orders(codec)]
    except (LookupError, UnicodeError):
        return None


def overlaps_itself(separator: str, codec: str | None) -> bool:
    """Whether two separators can share bytes, because the separator's end equals its beginning. If in doubt, true.

    Examples
    --------
    >>> [overlaps_itself(one, "utf_8") for one in ("||", "ab", "aba", "\\r\\n", "|", "")]
    [True, False, True, False, False, False]
    """
    if len(separator) <= 1 and separator.isascii():
        return False
    if codec is None:
        return True
    try:
        encoded = [separator.encode(order) for order in _orders(codec)]
    except (LookupError, UnicodeError):
        return True
    return any(one[:length] == one[-length:] for one in encoded for length in range(1, len(one)))


def _orders(codec: str) -> list[str]:
    """An encoding in each byte order that it may have."""
    return [f"{codec}_le", f"{codec}_be"] if codec in _WIDE else [codec]


def _separator(options: Mapping[str, str]) -> str:
    text = options.get("sep", ",")
    return "\t" if text == "\\t" else text


def _literally(text: str) -> str:
    """A Java regular expression that matches the text literally."""
    return "".join(f"\\x{{{ord(character):x}}}" for character in text)


def _codec(options: Mapping[str, str]) -> str | None:
    """Python's name of the encoding; None if it is unknown, or if its bytes do not determine characters."""
    try:
        name = codecs.lookup(options.get("encoding") or "utf-8").name.replace("-", "_")
    except LookupError:
        return None
    return None if any(name.startswith(shifting) for shifting in _SHIFTING) else name


def _holds_one(line: Column, texts: Sequence[bytes]) -> Column:
    from es_skipping.spark.classic import functions as F

    bytes_ = line.cast("binary")
    return reduce(or_, (F.contains(bytes_, F.lit(text)) for text in texts))


def _is_passed_over(line: Column, comment: str) -> Column:
    from es_skipping.spark.classic import functions as F

    return line.rlike(r"^[\x00-\x20]*$") | F.startswith(line, F.lit(comment))


def files_in_doubt(source: Source, paths: Iterable[str], doubts: Sequence[Doubt]) -> dict[str, str]:
    """The doubtful files, as ``_metadata.file_path`` spells them, with the first reason.

    Parameters
    ----------
    paths
        The files' paths, as Hadoop decodes them.
    doubts
        Only doubts that have a test for lines.
    """
    from es_skipping.spark.classic import functions as F

    given = reader_options(source.format, source.options)
    options = {name: given[name] for name in ("linesep", "encoding") if name in given}
    # Treat these paths literally, without patterns or partitions.
    read = (
        source.df.sparkSession.read.format("text")
        .schema("value STRING")
        .options(**options, recursiveFileLookup="true", __globPaths__="false")
        .load(list(paths))
    )
    place = F.struct("_metadata.file_block_start", F.monotonically_increasing_id())
    lines = read.select(F.col("_metadata.file_path").alias("path"), "value", place.alias("place"))
    first, line = F.min_by("value", "place"), F.col("value")
    flags = [doubt.holds(first) if doubt.first else F.max(doubt.holds(line)) for doubt in doubts if doubt.holds]
    named = [flag.alias(f"f{number}") for number, flag in enumerate(flags)]
    rows = lines.groupBy("path").agg(*named).where(reduce(or_, (F.col(f"f{n}") for n in range(len(flags)))))
    return {
        row.path: next(doubt.why for doubt, flag in zip(doubts, row[1:], strict=True) if flag) for row in rows.collect()
    }
