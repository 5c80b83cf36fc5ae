"""Filters as small trees, written for each engine: Spark's SQL for `esk.files`, and what its reader would write."""

from __future__ import annotations

import datetime
import functools
import operator
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

__all__ = ["PEERS", "DuckDB", "Filter", "Peer", "Polars", "PyArrow", "spark_text"]

Filter = tuple[Any, ...]
"""``("and" | "or", a, b)``, ``("not", a)``, ``("cmp", operator, column, value)``, ``("in", column, values)``,
``("between", column, low, high)``, ``("null" | "present" | "flag", column)``, ``("like", column, pattern)``."""

_OPERATORS: Final = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def spark_text(filter: Filter) -> str:
    """The text for `esk.files`."""
    return _text(filter, lambda value: _constant(value, "TIMESTAMP"))


def _text(filter: Filter, constant: Any) -> str:
    match filter:
        case ("and" | "or" as word, left, right):
            return f"({_text(left, constant)} {word.upper()} {_text(right, constant)})"
        case ("not", ("like" | "in" | "between" as word, column, *_) as child) if column in ("s", "d", "i", "ts"):
            return _text(child, constant).replace(f"{column} {word.upper()}", f"{column} NOT {word.upper()}", 1)
        case ("not", child):
            return f"NOT ({_text(child, constant)})"
        case ("cmp", sign, column, value):
            return f"{column} {sign} {constant(value)}"
        case ("in", column, values):
            return f"{column} IN ({', '.join(map(constant, values))})"
        case ("between", column, low, high):
            return f"{column} BETWEEN {constant(low)} AND {constant(high)}"
        case ("null", column):
            return f"{column} IS NULL"
        case ("present", column):
            return f"{column} IS NOT NULL"
        case ("flag", column):
            return str(column)
        case ("like", column, pattern):
            return f"{column} LIKE {constant(pattern)}"
    raise AssertionError(filter)


def _constant(value: Any, zoned: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        return f"'{text}'" if value.tzinfo is None else f"{zoned} '{text}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    if isinstance(value, str):
        return f"'{value}'"
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


class Peer:
    """An engine that reads files by itself.

    Parameters
    ----------
    zone
        The session's time zone, by which it reads times without one.
    naive
        Whether the files' timestamps are INT96, which some engines read as times without a zone.
    partitioned
        Whether the directories name columns, which the engine reads with those of the files.
    """

    name = ""

    def __init__(self, zone: str = "UTC", naive: bool = False, partitioned: bool = False) -> None:
        self.zone = ZoneInfo(zone)
        self.naive = naive
        self.partitioned = partitioned

    def ids(self, files: list[str], filter: Filter) -> list[int]:
        """The column ``id`` of the rows that satisfy the filter, sorted."""
        raise NotImplementedError

    def _moment(self, value: Any, column: str) -> Any:
        """A constant as the engine's reader would have to write it beside this column."""
        if isinstance(value, datetime.datetime) and column == "ts":
            return value if value.tzinfo is not None else value.replace(tzinfo=self.zone)
        return value


class DuckDB(Peer):
    name = "DuckDB"

    def __init__(self, zone: str = "UTC", naive: bool = False, partitioned: bool = False) -> None:
        super().__init__(zone, naive, partitioned)
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute(f"SET TimeZone = '{zone}'")

    def ids(self, files: list[str], filter: Filter) -> list[int]:
        text = _text(filter, lambda value: _constant(value, "TIMESTAMPTZ"))
        scan = f"read_parquet($files, hive_partitioning = {self.partitioned})"
        query = f"SELECT id FROM {scan} WHERE {text} ORDER BY id"
        return [row[0] for row in self.connection.execute(query, {"files": list(files)}).fetchall()]


class Polars(Peer):
    name = "Polars"

    def ids(self, files: list[str], filter: Filter) -> list[int]:
        scan = pl.scan_parquet(list(files), hive_partitioning=self.partitioned)
        frame = scan.filter(self._expression(filter)).select("id").collect()
        return sorted(frame["id"].to_list())

    def _expression(self, filter: Filter) -> pl.Expr:
        match filter:
            case ("and", left, right):
                return self._expression(left) & self._expression(right)
            case ("or", left, right):
                return self._expression(left) | self._expression(right)
            case ("not", child):
                return ~self._expression(child)
            case ("cmp", sign, column, value):
                return _OPERATORS[sign](pl.col(column), self._literal(value, column))
            case ("in", column, values):
                if column in ("s", "pw"):
                    return pl.col(column).is_in(values)
                some = [self._literal(value, column) for value in values]
                if any(isinstance(value, (Decimal, pl.Expr)) for value in some):  # `is_in` wants one type
                    return functools.reduce(operator.or_, (pl.col(column) == value for value in some))
                return pl.col(column).is_in(some)
            case ("between", column, low, high):
                return pl.col(column).is_between(self._literal(low, column), self._literal(high, column))
            case ("null", column):
                return pl.col(column).is_null()
            case ("present", column):
                return pl.col(column).is_not_null()
            case ("flag", column):
                return pl.col(column)
            case ("like", column, pattern):
                return pl.col(column).str.contains("(?s)^" + pattern.replace("%", ".*").replace("_", ".") + "$")
        raise AssertionError(filter)

    def _literal(self, value: Any, column: str) -> Any:
        value = self._moment(value, column)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            return pl.lit(value.astimezone(datetime.timezone.utc))
        return pl.lit(value) if isinstance(value, str) else value


class PyArrow(Peer):
    name = "pyarrow"

    def ids(self, files: list[str], filter: Filter) -> list[int]:
        partitioning = "hive" if self.partitioned else None
        scan = pads.dataset(list(files), partitioning=partitioning)
        table = scan.to_table(columns=["id"], filter=self._expression(filter))
        return sorted(table["id"].to_pylist())

    def _expression(self, filter: Filter) -> pc.Expression:
        match filter:
            case ("and", left, right):
                return self._expression(left) & self._expression(right)
            case ("or", left, right):
                return self._expression(left) | self._expression(right)
            case ("not", child):
                return ~self._expression(child)
            case ("cmp", sign, column, value):
                return _OPERATORS[sign](pc.field(column), self._scalar(value, column))
            case ("in", column, values):
                return pc.field(column).isin([self._plain(value, column) for value in values])
            case ("between", column, low, high):
                return (pc.field(column) >= self._scalar(low, column)) & (
                    pc.field(column) <= self._scalar(high, column)
                )
            case ("null", column):
                return pc.field(column).is_null()
            case ("present", column):
                return pc.field(column).is_valid()
            case ("flag", column):
                return pc.field(column)
            case ("like", column, pattern):
                return pc.match_like(pc.field(column), pattern)
        raise AssertionError(filter)

    def _plain(self, value: Any, column: str) -> Any:
        value = self._moment(value, column)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None and self.naive:
            return value.astimezone(self.zone).replace(tzinfo=None)
        return value

    def _scalar(self, value: Any, column: str) -> pc.Expression:
        return pc.scalar(pa.scalar(self._plain(value, column)))


PEERS: Final = (DuckDB, Polars, PyArrow)
