"""What a value means, as data: three objects of two rows each, and which of them a predicate reads.

From these tables come the test that plans each predicate on each store and index type, and the page "What is skipped,
and what never is". Where an index type must keep more than the best one, its objects are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["BEYOND", "CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """One topic.

    Parameters
    ----------
    topic, sql_type
        What it is about, and of which type the column is.
    objects
        The two values of the objects a, b and c, as SQL.
    reads
        By predicate over the column ``c``, the objects that are read.
    minmax
        The same where `MinMax` cannot tell as much as a list of values.
    indexed
        What is indexed, if it can be.
    settings
        Of the session that reads; the index was built in UTC and ANSI mode.
    stored
        Of which type the column is in the files, if it is another.
    """

    topic: str
    sql_type: str
    objects: tuple[tuple[str, str], tuple[str, str], tuple[str, str]]
    reads: Mapping[str, str]
    minmax: Mapping[str, str] = field(default_factory=dict)
    indexed: str = "c"
    settings: Mapping[str, str] = field(default_factory=dict)
    stored: str = ""

    def expected(self, predicate: str, index: str) -> str:
        """The objects read with one type of index."""
        return self.minmax.get(predicate, self.reads[predicate]) if index == "MinMax" else self.reads[predicate]


def _same(*values: str) -> tuple[tuple[str, str], tuple[str, str], tuple[str, str]]:
    a, b, c = values
    return (a, a), (b, b), (c, c)


CASES: tuple[Case, ...] = (
    Case(
        "NULL", "INT", (("1", "2"), ("NULL", "NULL"), ("NULL", "3")),
        {
            "c IS NULL": "b c", "c IS NOT NULL": "a c", "c = 1": "a", "c <> 1": "a c", "NOT (c = 3)": "a", "c <=> NULL": "b c",
            "NOT (c <=> 3)": "a b c", "c IN (3, NULL)": "c", "c NOT IN (3, NULL)": "", "c = NULL": "", "c > 2 OR c IS NULL": "b c",
        },
    ),
    Case(
        "NaN: greater than every number, equal to itself", "DOUBLE", (("1D", "1D"), ("double('NaN')", "double('NaN')"), ("double('NaN')", "5D")),
        {"c > 100": "b c", "c = double('NaN')": "b c", "c < 0": "", "c <> 5": "a b c", "c >= double('NaN')": "b c", "c < double('NaN')": "a c", "NOT (c > 2)": "a"},
    ),
    Case(
        "The two zeros are equal", "DOUBLE", _same("-0.0D", "0.0D", "1D"),
        {"c = 0": "a b", "c = -0.0D": "a b", "c < 0": "", "c >= 0": "a b c", "c <> 0": "c"},
    ),
    Case(
        "Infinities", "DOUBLE", _same("double('-Infinity')", "double('Infinity')", "1.7976931348623157E308D"),
        {"c > 1.7976931348623157E308D": "b", "c < -1.7976931348623157E308D": "a", "c = double('Infinity')": "b", "c <= 1.7976931348623157E308D": "a c"},
    ),
    Case(
        "A FLOAT beside a literal of more digits", "FLOAT", _same("float(0.1)", "float(0.5)", "float(16777216)"),
        {"c = 0.1D": "", "c = float(0.1)": "a", "c > 0.1D": "a b c", "c = 16777217": "", "c = 16777216": "c"},
    ),
    Case(
        "The ends of BIGINT, and beyond what a double holds", "BIGINT", _same("(-9223372036854775807L - 1L)", "9223372036854775807L", "9007199254740993L"),
        {"c = 9007199254740992": "", "c = 9007199254740993": "c", "c > 9223372036854775806": "b", "c < -9223372036854775807": "a", "c < 99999999999999999999": "a b c"},
    ),
    Case(
        "Literals of another type", "INT", _same("1", "2", "3"),
        {"c > 1.5": "b c", "c = 1.5": "", "c = '2'": "b", "c < 3000000000": "a b c", "c >= 2.0D": "b c", "cast(c AS bigint) = 3": "c", "cast(c AS double) < 1.5D": "a"},
    ),
    Case(
        "Decimals by value, to the last digit", "DECIMAL(38,18)", _same("0.000000000000000001BD", "99999999999999999999.999999999999999999BD", "0BD"),
        {"c > 99999999999999999999.999999999999999998BD": "b", "c = 0": "c", "c = 0.000000000000000001BD": "a", "c < 1": "a c"},
    ),
    Case(
        "Timestamps to the microsecond, in any year", "TIMESTAMP",
        _same("timestamp'2024-01-01 00:00:00.000001'", "timestamp'2024-01-01 00:00:00.000002'", "timestamp'0001-01-01 00:00:00'"),
        {"c = timestamp'2024-01-01 00:00:00.000002'": "b", "c < timestamp'1582-10-15 00:00:00'": "c", "c > timestamp'2024-01-01 00:00:00.000001'": "b", "c >= date'2024-01-01'": "a b", "c - INTERVAL '1' DAY < timestamp'2000-01-01 00:00:00'": "c", "c + INTERVAL '01:30' HOUR TO MINUTE > timestamp'2024-01-01 01:30:00.000001'": "b"},
    ),
    Case(
        "Decimals of few digits beside literals of more", "DECIMAL(5,2)", _same("1.23BD", "999.99BD", "-0.01BD"),
        {"c > 1.229": "a b", "c > 1.234": "b", "c = 1.2300": "a", "c = 1.234": "", "c < 100000": "a b c", "c >= 999.991BD": "", "c < 0": "c"},
    ),
    Case(
        "A session of another time zone", "TIMESTAMP", _same("timestamp'2024-01-01 00:00:00Z'", "timestamp'2024-01-01 15:00:00Z'", "timestamp'2023-12-31 15:00:00Z'"),
        {"c = '2024-01-02'": "b", "c < '2024-01-01 09:00:00'": "c", "c >= timestamp'2024-01-01 09:00:00'": "a b", "c > date'2024-01-01'": "a b"},
        settings={"spark.sql.session.timeZone": "Asia/Tokyo"},
    ),
    Case(
        "Without ANSI mode: strings that are not numbers are NULL, and casts wrap around", "INT", _same("1", "257", "3"),
        {"c = 'x'": "", "c < '2'": "a", "CAST(c AS TINYINT) = 1": "a b c", "c + 2147483647 < 0": "a b c", "c = '257'": "b", "c = '3.0'": "c", "c IN ('1', '3')": "a b c", "c BETWEEN '2' AND 300": "b c", "c = 1.5": "", "c / 0 IS NULL": "a b c", "CAST(c AS BIGINT) > 2147483647": ""},
        settings={"spark.sql.ansi.enabled": "false"},
    ),
    Case(
        "Without ANSI mode: decimals and strings beside each other", "DECIMAL(5,2)", _same("1.50BD", "-0.01BD", "999.99BD"),
        {"c = '1.5'": "a", "c = 'x'": "", "c < '0'": "b", "c > 1000000000000000000000": "", "c <> '1.5'": "b c"},
        settings={"spark.sql.ansi.enabled": "false"},
    ),
    Case("Names in any case", "INT", _same("1", "2", "3"), {"C = 1": "a", "C IN (2, 3)": "b c", "C IS NULL": ""}),
    Case(
        "A case-sensitive session over an index from a session that ignores case", "INT", _same("1", "2", "3"),
        {"c = 1": "a b c", "c > 5": "a b c", "c IS NULL": "a b c"},
        settings={"spark.sql.caseSensitive": "true"},
    ),
    Case(
        "Collations other than UTF8_BINARY cannot be indexed", "STRING COLLATE UTF8_LCASE", _same("'Purley'", "'PURLEY'", "'Purton'"),
        {"c = 'purley'": "a b c", "c > 'purley'": "a b c", "c LIKE 'PUR%'": "a b c", "c COLLATE UTF8_BINARY = 'Purley'": "a b c"},
        indexed="",
    ),
    Case(
        "A collation given in the filter rules nothing out", "STRING", _same("'Purley'", "'PURLEY'", "'Purton'"),
        {"c COLLATE UTF8_LCASE = 'purley'": "a b c", "c = 'purley' COLLATE UTF8_LCASE": "a b c", "startswith(c, 'pur' COLLATE UTF8_LCASE)": "a b c", "c = 'Purley'": "a"},
    ),
    Case(
        "Bytes without a string type in the file, read as strings", "STRING", _same("X'61'", "X'61FF'", "X'610062'"),
        {"c = 'a'": "a b", "c > 'a'": "b c", "c = 'a\\0b'": "b c", "c < 'a'": "b", "c LIKE 'a%'": "a b c", "c IS NULL": "b"},
        {"c IS NULL": ""},
        stored="BINARY",
    ),
    Case(
        "Before 1970 and at the end of time", "TIMESTAMP_NTZ",
        _same("timestamp_ntz'1969-12-31 23:59:59.999999'", "timestamp_ntz'1970-01-01 00:00:00'", "timestamp_ntz'9999-12-31 23:59:59.999999'"),
        {"c < timestamp_ntz'1970-01-01 00:00:00'": "a", "c = timestamp_ntz'1970-01-01 00:00:00'": "b", "c > timestamp_ntz'9999-12-31 23:59:59.999998'": "c"},
    ),
    Case(
        "Dates of both calendars", "DATE", _same("date'0001-01-01'", "date'1582-10-04'", "date'9999-12-31'"),
        {"c = date'1582-10-04'": "b", "c < date'1582-10-15'": "a b", "c > date'9999-12-30'": "c", "c = '0001-01-01'": "a"},
    ),
    Case(
        "Functions of dates and times that keep their order", "DATE", _same("date'2023-12-31'", "date'2024-01-01'", "date'2024-06-30'"),
        {"year(c) = 2024": "b c", "year(c) < 2024": "a", "year(c) IN (2022, 2023)": "a", "trunc(c, 'MM') >= date'2024-06-01'": "c", "last_day(c) = date'2023-12-31'": "a", "unix_date(c) = 19723": "b"},
    ),
    Case(
        "Strings in the order of their UTF-8 bytes", "STRING", _same("'\uff01'", "'\U0001f600'", "'z'"),
        {"c > '\uff01'": "b", "c < '\uff01'": "c", "c BETWEEN 'a' AND '\uff01'": "a c"},
    ),
    Case(
        "Strings are compared whole: empty, with a NUL, with spaces", "STRING", _same("''", "'a\\0b'", "'a '"),
        {"c = ''": "a", "c = 'a'": "", "c = 'a '": "c", "c LIKE 'a_b'": "b", "c LIKE 'a%'": "b c", "c NOT LIKE 'a%'": "a"},
        {"c LIKE 'a_b'": "b c"},
    ),
    Case(
        "Tests of strings", "STRING", _same("'Purley'", "'Purton'", "'50%'"),
        {"c LIKE 'Pur%'": "a b", "c LIKE '%ton'": "b", "c LIKE '%ur%'": "a b", "c LIKE '50\\\\%'": "c", "c RLIKE '^Purl'": "a", "startswith(c, 'Purt')": "b", "NOT startswith(c, 'Pur')": "c"},
        {"c LIKE '%ton'": "a b c", "c LIKE '%ur%'": "a b c"},
    ),
    Case(
        "CHAR cannot be indexed: a setting decides whether Spark pads it on reading", "CHAR(4)", _same("'a'", "'ab'", "'b'"),
        {"c = 'a'": "a b c", "c = 'a '": "a b c", "c > 'ab'": "a b c", "c LIKE 'a%'": "a b c"},
        indexed="",
    ),
    Case("VARCHAR is not padded", "VARCHAR(4)", _same("'a'", "'a '", "'b'"), {"c = 'a'": "a", "c = 'a '": "b", "c > 'a'": "b c"}),
    Case(
        "Objects with bytes that are not UTF-8 are always read", "STRING", _same("CAST(X'FF' AS STRING)", "CAST(X'61FF' AS STRING)", "'z'"),
        {"c > 'z'": "a b", "c = 'z'": "a b c", "c LIKE 'a%'": "a b", "c < 'b'": "a b", "c IS NULL": "a b", "c LIKE '_\ufffd'": "a b c"},
        {"c IS NULL": ""},
    ),
    Case("Binary by unsigned bytes", "BINARY", _same("X'80'", "X'7F'", "X''"), {"c > X'7F'": "a", "c = X''": "c", "c < X'80'": "b c"}),
    Case(
        "BOOLEAN", "BOOLEAN", (("true", "true"), ("false", "false"), ("true", "false")),
        {"c": "a c", "NOT c": "b c", "c = false": "b c", "c <> true": "b c", "c IS NULL": ""},
    ),
    Case(
        "Arithmetic of whole numbers", "INT", _same("1", "20", "300"),
        {
            "c + 5 > 100": "c", "2 * c - 1 = 39": "b", "abs(c - 18) < 5": "b", "-c > -5": "a", "c DIV 10 = 2": "b", "100 - c >= 90": "a", "c * c > 100": "a b c",
            "greatest(c, 5) < 10": "a", "least(c, 250) = 250": "c", "coalesce(c, 0) = 20": "b", "nullif(c, 20) > 10": "c", "if(c > 100, c, 0) > 0": "c", "c % 10 = 1": "a b c",
            "try_add(c, 5) > 100": "c", "c + 5 IN (6, 305)": "a c", "NOT (abs(c - 18) < 5)": "a c",
        },
    ),
    Case(
        "Whole numbers that wrap around without ANSI mode", "INT", _same("2147483647", "-2147483648", "7"),
        {"c + 1 < 0": "a b", "c + 1 > 0": "c", "c - 1 > 0": "a b c", "abs(c) < 0": "b", "-c < 0": "a b c"},
        settings={"spark.sql.ansi.enabled": "false"},
    ),
    Case(
        "Arithmetic of floating-point numbers", "DOUBLE", _same("1D", "20.5D", "double('NaN')"),
        {"c * 2.5D + 1 > 40": "b c", "c / 2 < 1": "a", "1 / c > 0.5D": "a c", "floor(c) = 20": "b", "ceil(c) = 0": "c", "abs(c) <= 1": "a", "1 - c < -1": "b c", "sqrt(c) > 2": "a b c"},
    ),
    Case(
        "Arithmetic of decimals and of dates", "DECIMAL(8,2)", _same("1BD", "20.5BD", "300BD"),
        {"c * 1.5 > 100": "c", "c * (1 - 0.25) < 1": "a", "c / 3 > 50": "c", "c + 0.01 = 20.51": "b", "date_add(date'2024-01-01', int(c)) > date'2024-02-01'": "a b c"},
    ),
    Case(
        "A field of a struct that is null", "STRUCT<x: INT>", _same("named_struct('x', 1)", "NULL", "named_struct('x', CAST(NULL AS INT))"),
        {"c.x IS NULL": "b c", "c.x = 1": "a", "c.x <> 2": "a", "c.x IS NOT NULL": "a"},
        indexed="c.x",
    ),
    Case(
        "Elements of arrays, with an index of `c[]`", "ARRAY<INT>",
        (("array(1, 5)", "array()"), ("array(NULL, 9)", "NULL"), ("array(2)", "array(4, 2)")),
        {
            "array_contains(c, 5)": "a", "arrays_overlap(c, array(5, 9, NULL))": "a b", "exists(c, x -> x > 5)": "b",
            "exists(c, x -> x > 1 AND x < 4)": "c", "exists(c, x -> x > 3) AND exists(c, x -> x < 2)": "a", "exists(c, x -> x IS NULL)": "b",
            "size(filter(c, x -> x = 4)) > 0": "c", "get(c, 0) = 2": "c", "get(c, 1) > 8": "b", "try_element_at(c, -1) = 9": "b",
            "NOT forall(c, x -> x < 6)": "b", "NOT array_contains(c, 5)": "a b c", "NOT exists(c, x -> x > 5)": "a b c", "forall(c, x -> x > 5)": "a b c",
            "size(filter(c, x -> x = 4)) = 0": "a b c", "size(c) = 0": "a b c", "c IS NULL": "a b c",
        },
        {"arrays_overlap(c, array(5, 9, NULL))": "a b", "exists(c, x -> x > 1 AND x < 4)": "a c", "get(c, 0) = 2": "a c", "size(filter(c, x -> x = 4)) > 0": "a c"},
        indexed="c[]",
    ),
    Case(
        "Keys of maps, with an index of `map_keys(c)[]`", "MAP<STRING, INT>",
        (("map('k', 1)", "map()"), ("map('l', 1)", "NULL"), ("map('m', NULL)", "map('n', 2)")),
        {
            "map_contains_key(c, 'k')": "a", "c['m'] = 1": "c", "c['l'] = 1": "b", "try_element_at(c, 'n') > 0": "c", "c['l'] IS NOT NULL": "b",
            "c['l'] IS NULL": "a b c", "NOT map_contains_key(c, 'k')": "a b c",
        },
        {"c['l'] = 1": "b", "c['l'] IS NOT NULL": "b"},
        indexed="map_keys(c)[]",
    ),
)  # fmt: skip

BEYOND: tuple[tuple[str, str, str], ...] = (
    ("Expressions that are not deterministic", "`rand() < 0.5`", "each row gets a new value, so Spark does not pass the filter to the scan"),
    ("A filter above a LIMIT, a window or an aggregate", "`... WHERE row_number = 1`", "it does not constrain single rows of the file"),
    ("Shuffled joins whose other side is not indexed, and joins that keep rows without a match", "`LEFT JOIN` from the table, `NOT IN`, a sort-merge join with a CSV file", "no key is known in time, or every row counts; see [joins](../explanation/joins.md)"),
    ("Limits above a join, an aggregate or a union, or over text files", "`ORDER BY ts LIMIT 10`", "rows of a file may not reach the limit, so they guarantee nothing; see [ORDER BY ... LIMIT](../explanation/first-rows.md)"),
    ("Objects that are new, changed or could not be read", "", "only an indexed object with the same path, length and time is skipped"),
    ("Objects beyond an index's limit", "a `ValueList` over its limit", "their metadata is unknown, and unknown is never *no*"),
    ("CSV files with escaped quotes", "two quotes where one escapes the other", "Spark's value for one column depends on the other columns of the query, unless `columnPruning=false`"),
    ("CSV and JSON files with times that lack a date, where a TIMESTAMP is indexed", "`12:30`", "Spark reads it as a time on the current day"),
    ("Reads under other options or settings", "`nullValue`, the time zone, the rebase modes", "the values may differ; `esk.explain` names the setting"),
    ("Aggregates that a *DSv2* scan takes from footers", "`spark.sql.parquet.aggregatePushdown` with `useV1SourceList` without Parquet", "the scan returns minima, maxima and counts, not rows"),
    ("Text files on HDFS that a writer has open", "CSV, JSON", "the writer may have added rows that the listing does not show"),
)  # fmt: skip
"""What is read whatever the filter, an example, and why. Why a filter rules nothing out: ``predicates/reasons.py``."""
