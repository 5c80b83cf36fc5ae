"""What a comparison of a function of time says of the time: true of each row of the comparison, and little more."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.predicates.normal import normalise
from es_skipping.predicates.times import dates_of
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Constant,
    IsIn,
    Literal,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType

TIMESTAMP, NTZ, DATE, INT, BIGINT, STRING = map(
    DataType, ("timestamp", "timestamp_ntz", "date", "int", "bigint", "string")
)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo", "Asia/Manila", "Africa/Cairo"]
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TS, DAY = Column(("ts",), TIMESTAMP), Column(("d",), DATE)


def holds(predicate: Predicate, column: Column, value: int) -> bool:
    """Of what is said of the column alone: comparisons of other operands are taken to be true."""
    match predicate:
        case Constant(truth):
            return truth
        case And(children):
            return all(holds(child, column, value) for child in children)
        case Or(children):
            return any(holds(child, column, value) for child in children)
        case Comparison(comparator, left, Literal(bound)) if left == column:
            return OPERATORS[comparator](value, bound)
    return True


def days(day: date) -> int:
    return day.toordinal() - EPOCH.toordinal()


def micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def cut(at: datetime, unit: str) -> datetime:
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=at.month - (at.month - 1) % 3, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - timedelta(days=at.weekday())
        case "day":
            return midnight
    return at.replace(minute=0, second=0, microsecond=0)


def function_of(name: str, zone: str) -> tuple[Operand, Callable[[datetime], int]]:
    """The function as an operand, and as Python has it for an instant in UTC."""
    local = lambda at: at.astimezone(ZoneInfo(zone))  # noqa: E731
    day = Cast(TS, DATE, "ANSI", zone)
    if name == "date":
        return day, lambda at: days(local(at).date())
    if name == "year":
        return Call("year", (day,), INT), lambda at: local(at).year
    if name == "ntz":
        return Cast(TS, NTZ, "ANSI", zone), lambda at: micros(local(at).replace(tzinfo=timezone.utc))
    if name == "unixtimestamp":
        return Call("unixtimestamp", (TS, Literal("f", STRING)), BIGINT), lambda at: int(micros(at) / 1_000_000)
    unit = Literal(name.upper(), STRING)
    call = Call("trunctimestamp", (unit, TS), TIMESTAMP, (("timeZoneId", zone),))
    return call, lambda at: micros(cut(local(at), name).astimezone(timezone.utc))


FIRST, LAST = datetime(2, 1, 2, tzinfo=timezone.utc), datetime(9998, 12, 30, tzinfo=timezone.utc)
moments = st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None), timezones=st.just(timezone.utc))
near = st.timedeltas(timedelta(days=-500), timedelta(days=500)) | st.timedeltas(timedelta(-2), timedelta(2))
names = st.sampled_from(["date", "year", "ntz", "unixtimestamp", "year", "quarter", "month", "week", "day", "hour"])


@given(name=names, zone=st.sampled_from(ZONES), at=moments, by=near, comparator=st.sampled_from(list(OPERATORS)))
def test_it_holds_of_every_row_of_the_comparison(
    name: str, zone: str, at: datetime, by: timedelta, comparator: str
) -> None:
    operand, function = function_of(name, zone)
    row = at + max(FIRST - at, min(LAST - at, by))
    value = function(at)
    predicate = normalise(Comparison(comparator, operand, Literal(value, operand.type)))  # type: ignore[arg-type]
    if OPERATORS[comparator](function(row), value):
        assert holds(predicate, TS, micros(row))
    listed = normalise(IsIn(operand, (value, function(at - timedelta(days=40)))))
    if function(row) == value:
        assert holds(listed, TS, micros(row))


@given(zone=st.sampled_from(ZONES), at=moments, by=near, comparator=st.sampled_from(list(OPERATORS)))
def test_the_date_of_a_time_that_is_compared(zone: str, at: datetime, by: timedelta, comparator: str) -> None:
    operand, date_of = function_of("date", zone)
    row = at + max(FIRST - at, min(LAST - at, by))
    said = dates_of(comparator, operand, TS, micros(at))
    assert said is not None
    first, last = said
    if OPERATORS[comparator](micros(row), micros(at)):
        assert (first is None or first <= date_of(row)) and (last is None or date_of(row) <= last)
    most = 0 if zone == "UTC" else 2
    edge = date_of(at + timedelta(microseconds=(comparator == ">") - (comparator == "<")))
    assert all(abs(end - edge) <= most for end in said if end is not None), "and no more than it must"


def test_of_which_times_a_date_is_told() -> None:
    operand, _ = function_of("date", "UTC")
    assert dates_of("<>", operand, TS, 0) is None
    assert dates_of("=", operand, Column(("other",), TIMESTAMP), 0) is None
    assert dates_of("=", Cast(TS, NTZ, "ANSI", "UTC"), TS, 0) is None
    assert dates_of("=", Cast(DAY, DATE), DAY, 0) is None


@pytest.mark.parametrize(
    ("name", "zone", "slack"),
    [
        *(("date", "UTC", 0), ("date", "Asia/Kolkata", 18), ("year", "UTC", 0), ("year", "Asia/Kolkata", 18)),
        *(("month", "UTC", 0), ("month", "Asia/Kolkata", 36), ("hour", "UTC", 0)),
    ],
)
def test_it_says_no_more_than_it_must(name: str, zone: str, slack: int) -> None:
    operand, function = function_of(name, zone)
    at = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)
    predicate = normalise(Comparison("=", operand, Literal(function(at), operand.type)))
    width = {"date": 1, "year": 366, "month": 31, "hour": 1 / 24}[name]
    begin = cut(at, name if name in ("year", "month", "hour") else "day")
    margin = timedelta(hours=slack + 6)  # and Kolkata's own five and a half
    assert not holds(predicate, TS, micros(begin - margin))
    assert not holds(predicate, TS, micros(begin + timedelta(days=width) + margin))


@given(
    day=st.integers(-(1 << 31), (1 << 31) - 1), by=st.integers(-800, 800), comparator=st.sampled_from(list(OPERATORS))
)
def test_years_of_any_date(day: int, by: int, comparator: str) -> None:
    other = max(-(1 << 31), min((1 << 31) - 1, day + by))
    year = Call("year", (DAY,), INT)
    predicate = normalise(Comparison(comparator, year, Literal(year_of(day), INT)))  # type: ignore[arg-type]
    assert holds(predicate, DAY, other) == OPERATORS[comparator](year_of(other), year_of(day))


def year_of(day: int) -> int:
    """By 400 years at a time, which are 146,097 days."""
    cycles, left = divmod(day + 719_162, 146_097)
    return 400 * cycles + date.fromordinal(left + 1).year


def test_what_may_run_over_is_kept() -> None:
    """Near the least timestamp Spark's own arithmetic may run over, and a time long ago become one far ahead."""
    operand, _ = function_of("day", "Asia/Kolkata")
    predicate = normalise(Comparison(">", operand, Literal(0, TIMESTAMP)))
    assert holds(predicate, TS, -(1 << 63))
    assert not holds(predicate, TS, -(1 << 62))
