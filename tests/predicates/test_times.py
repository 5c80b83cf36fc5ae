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
from es_skipping.predicates.times import dates_of, said_of_argument
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
    if name.startswith("+"):
        by = timedelta(microseconds=int(name[1:]))
        return moved(TS, by // MICRO, zone), lambda at: micros(plus(local(at), by).astimezone(timezone.utc))
    unit = Literal(name.upper(), STRING)
    call = Call("trunctimestamp", (unit, TS), TIMESTAMP, (("timeZoneId", zone),))
    return call, lambda at: micros(cut(local(at), name).astimezone(timezone.utc))


MICRO = timedelta(microseconds=1)


def plus(at: datetime, by: timedelta) -> datetime:
    """Days by the calendar of the zone, what is left by the clock, as Spark adds them."""
    rest = abs(by) % timedelta(days=1) * (1 if by >= timedelta() else -1)
    whole = at + (by - rest)  # Python adds to local time
    # A local time that was left out or exists twice is another in Java: within the zone's own offsets.
    return (whole.astimezone(timezone.utc) + rest).astimezone(at.tzinfo)


FIRST, LAST = datetime(2, 1, 2, tzinfo=timezone.utc), datetime(9998, 12, 30, tzinfo=timezone.utc)
moments = st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None), timezones=st.just(timezone.utc))
near = st.timedeltas(timedelta(days=-500), timedelta(days=500)) | st.timedeltas(timedelta(-2), timedelta(2))
moves = st.builds("+{}".format, st.integers(-100 * 86_400_000_000, 100 * 86_400_000_000))
names = (
    st.sampled_from(["date", "year", "ntz", "unixtimestamp", "year", "quarter", "month", "week", "day", "hour"]) | moves
)


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


def call(name: str, *arguments: Operand, type: DataType = BIGINT, zone: str | None = None) -> Call:
    return Call(name, arguments, type, () if zone is None else (("timeZoneId", zone),))


def moved(time: Column, by: int, zone: str) -> Call:
    return Call("timestampaddinterval", (time,), time.type, (("microseconds", str(by)), ("timeZoneId", zone)))


def unit(name: str) -> Literal:
    return Literal(name, STRING)


HOUR, A_DAY = 3_600_000_000, 86_400_000_000
LOCAL = Column(("ntz",), NTZ)
WEEKS = [
    ("week", 7),
    ("month", 31),
    ("mon", 31),
    ("mm", 31),
    ("quarter", 92),
    ("year", 366),
    ("yy", 366),
    ("yyyy", 366),
]
SHORT = {"day": A_DAY, "dd": A_DAY, "hour": HOUR, "minute": 60_000_000, "second": 1_000_000}
SHORT |= {"millisecond": 1_000, "microsecond": 1}

SPANS: list[tuple[str, Operand, Column, int, int, int]] = [
    ("date in UTC", Cast(TS, DATE, "ANSI", "UTC"), TS, 3, 3 * A_DAY, 4 * A_DAY - 1),
    ("date", Cast(TS, DATE, "ANSI", "Asia/Tokyo"), TS, 3, 3 * A_DAY - 18 * HOUR, 4 * A_DAY - 1 + 18 * HOUR),
    ("date without zone", Cast(LOCAL, DATE, "ANSI", "UTC"), LOCAL, 3, 3 * A_DAY, 4 * A_DAY - 1),
    ("midnight in UTC", Cast(DAY, TIMESTAMP, "ANSI", "UTC"), DAY, 3 * A_DAY, 3, 3),
    ("after midnight", Cast(DAY, TIMESTAMP, "ANSI", "UTC"), DAY, 3 * A_DAY + 1, 3, 4),
    ("midnight", Cast(DAY, TIMESTAMP, "ANSI", "Asia/Tokyo"), DAY, 3 * A_DAY, 2, 4),
    ("midnight without zone", Cast(DAY, NTZ, "ANSI", "UTC"), DAY, 3 * A_DAY, 3, 3),
    ("local time in UTC", Cast(TS, NTZ, "ANSI", "UTC"), TS, 7, 7, 7),
    ("local time", Cast(TS, NTZ, "ANSI", "Asia/Tokyo"), TS, 7, 7 - 18 * HOUR, 7 + 18 * HOUR),
    ("time of local time", Cast(LOCAL, TIMESTAMP, "ANSI", "Asia/Tokyo"), LOCAL, 7, 7 - 18 * HOUR, 7 + 18 * HOUR),
    ("year", call("year", DAY, type=INT), DAY, 2024, days(date(2024, 1, 1)), days(date(2024, 12, 31))),
    ("unixdate", call("unixdate", DAY, type=INT), DAY, 7, 7, 7),
    ("unixmicros", call("unixmicros", TS), TS, 7, 7, 7),
    ("unixmillis", call("unixmillis", TS), TS, 7, 6_000, 8_000),
    ("ts + 1 day", moved(TS, A_DAY, "UTC"), TS, 7, 7 - A_DAY, 7 - A_DAY),
    ("ts - 1 hour in a zone", moved(TS, -HOUR, "Asia/Tokyo"), TS, 7, 7 + HOUR, 7 + HOUR),
    ("ts - 1 day in a zone", moved(TS, -A_DAY, "Asia/Tokyo"), TS, 7, 7 - 12 * HOUR, 7 + 60 * HOUR),
    ("a local time + 1 day", moved(LOCAL, A_DAY, "Asia/Tokyo"), LOCAL, 7, 7 - A_DAY, 7 - A_DAY),
    ("unixseconds", call("unixseconds", TS), TS, 7, 6_000_000, 8_000_000),
    ("unixtimestamp", call("unixtimestamp", TS, unit("f")), TS, 7, 6_000_000, 8_000_000),
    ("tounixtimestamp", call("tounixtimestamp", TS, unit("f")), TS, 7, 6_000_000, 8_000_000),
]
WRAPPING: list[tuple[str, Operand, Column, int, int, int, int]] = [
    ("last day", call("lastday", DAY, type=DATE), DAY, 40, 10, 40, 31),
    *((f"trunc {u}", call("truncdate", DAY, unit(u.upper()), type=DATE), DAY, 40, 40, 39 + w, w) for u, w in WEEKS),
    *(
        (f"date_trunc {u}", call("trunctimestamp", unit(u), TS, zone="UTC"), TS, 40, 40, 40 + w, w + 2 * A_DAY)
        for u, w in (SHORT | {name: width * A_DAY for name, width in WEEKS}).items()
    ),
    *(
        (
            f"date_trunc {u} {z}",
            call("trunctimestamp", unit(u), TS, zone=z),
            TS,
            0,
            -36 * HOUR,
            w + 36 * HOUR,
            w + 2 * A_DAY,
        )
        for u, w in (("hour", HOUR), ("year", 366 * A_DAY))
        for z in ("Asia/Tokyo", None)
    ),
]


@pytest.mark.parametrize(
    ("operand", "column", "value", "first", "last"), [case[1:] for case in SPANS], ids=[case[0] for case in SPANS]
)
def test_exactly_this_is_said_of_the_time(operand: Operand, column: Column, value: int, first: int, last: int) -> None:
    at_least, at_most = (
        Comparison(">=", column, Literal(first, column.type)),
        Comparison("<=", column, Literal(last, column.type)),
    )
    assert said_of_argument("=", operand, value) == And((at_least, at_most))
    assert said_of_argument(">=", operand, value) == at_least
    assert said_of_argument("<=", operand, value) == at_most
    assert said_of_argument(">", operand, value - 1) == at_least
    assert said_of_argument("<", operand, value + 1) == at_most
    assert said_of_argument("<>", operand, value) is None
    assert said_of_argument("=", operand, "7") is None
    assert said_of_argument("=", operand, True) is None


@pytest.mark.parametrize(
    ("operand", "column", "value", "first", "last", "wraps"),
    [case[1:] for case in WRAPPING],
    ids=[case[0] for case in WRAPPING],
)
def test_exactly_this_and_what_may_run_over(
    operand: Operand, column: Column, value: int, first: int, last: int, wraps: int
) -> None:
    at_least, at_most = (
        Comparison(">=", column, Literal(first, column.type)),
        Comparison("<=", column, Literal(last, column.type)),
    )
    most = (1 << (31 if column.type == DATE else 63)) - 1
    low = Comparison("<=", column, Literal(-most - 1 + wraps, column.type))
    high = Comparison(">=", column, Literal(most - wraps, column.type))
    assert said_of_argument("=", operand, value) == Or((And((at_least, at_most)), low, high))
    assert said_of_argument(">=", operand, value) == Or((at_least, low, high))
    assert said_of_argument("<=", operand, value) == Or((at_most, low, high))


NOTHING_SAID: list[tuple[str, Operand]] = [
    ("a column", TS),
    ("without arguments", call("year")),
    ("month", call("month", DAY, type=INT)),
    ("year of a timestamp", call("year", TS, type=INT)),
    ("unixdate of a timestamp", call("unixdate", TS, type=INT)),
    ("unixmicros of a date", call("unixmicros", DAY)),
    ("unixseconds of a local time", call("unixseconds", LOCAL)),
    ("trunc to what is no unit", call("truncdate", DAY, unit("day"), type=DATE)),
    ("trunc to a column", call("truncdate", DAY, Column(("u",), STRING), type=DATE)),
    ("date_trunc to what is no unit", call("trunctimestamp", unit("century"), TS, zone="UTC")),
    ("date_trunc of a local time", call("trunctimestamp", unit("hour"), LOCAL, zone="UTC")),
    ("a number as a timestamp", Cast(Column(("n",), BIGINT), TIMESTAMP, "ANSI", "UTC")),
    ("a timestamp as a number", Cast(TS, BIGINT, "ANSI", "UTC")),
    ("a date as a number", Cast(DAY, INT, "ANSI", "UTC")),
    ("a timestamp as such", Cast(TS, TIMESTAMP, "ANSI", "UTC")),
    (
        "a timestamp plus an interval that is not written out",
        call("timestampaddinterval", TS, type=TIMESTAMP, zone="UTC"),
    ),
    ("a date plus an interval", Call("timeadd", (DAY,), DATE, (("microseconds", "5"),))),
    ("a number plus an interval", Call("timeadd", (Column(("n",), BIGINT),), BIGINT, (("microseconds", "5"),))),
]


@pytest.mark.parametrize("operand", [case[1] for case in NOTHING_SAID], ids=[case[0] for case in NOTHING_SAID])
def test_nothing_is_said_of_the_time(operand: Operand) -> None:
    assert said_of_argument("=", operand, 7) is None


def test_beyond_the_ends_of_the_type() -> None:
    """A value that no argument has is a contradiction; one that all have says nothing."""
    year = call("year", DAY, type=INT)
    first, last = -5_877_641, 5_881_580
    assert said_of_argument(">=", year, last + 1) == Constant(False)
    assert said_of_argument(">=", year, last) == Comparison(">=", DAY, Literal(2_147_483_455, DATE))
    assert said_of_argument("<=", year, last) is None
    assert said_of_argument("<", year, last) is not None
    assert said_of_argument("<=", year, first - 1) == Constant(False)
    assert said_of_argument(">=", year, first) is None
    assert said_of_argument(">", year, first) is not None
    micros_of = call("unixmicros", TS)
    least, most = -(1 << 63), (1 << 63) - 1
    assert said_of_argument("<=", micros_of, least) == Comparison("<=", TS, Literal(least, TIMESTAMP))
    assert said_of_argument(">=", micros_of, most) == Comparison(">=", TS, Literal(most, TIMESTAMP))
    assert said_of_argument(">=", micros_of, least) is None
    assert said_of_argument("<=", micros_of, most) is None
    assert said_of_argument(">", micros_of, most) == Constant(False)
    assert said_of_argument("<", micros_of, least) == Constant(False)


@pytest.mark.parametrize(
    ("comparator", "at", "said"),
    [
        *(("=", 0, (0, 0)), ("=", A_DAY - 1, (0, 0)), ("=", A_DAY, (1, 1)), ("=", -1, (-1, -1))),
        *((">", A_DAY - 1, (1, None)), (">=", A_DAY - 1, (0, None)), ("<", A_DAY, (None, 0)), ("<=", A_DAY, (None, 1))),
    ],
)
def test_exactly_these_dates(comparator: str, at: int, said: tuple[int | None, int | None]) -> None:
    for time in (TS, LOCAL):
        assert dates_of(comparator, Cast(time, DATE, "ANSI", "UTC"), time, at) == said
    for wrong in ("0", True, 1.0):
        assert dates_of(comparator, Cast(TS, DATE, "ANSI", "UTC"), TS, wrong) is None
    elsewhere = dates_of("=", Cast(TS, DATE, "ANSI", "Asia/Tokyo"), TS, 18 * HOUR)
    assert elsewhere == (0, 1)
    assert dates_of("=", Cast(TS, DATE, "ANSI", "Asia/Tokyo"), TS, 6 * HOUR) == (-1, 1)
    assert dates_of("=", Cast(TS, DATE, "ANSI", "Asia/Tokyo"), TS, 6 * HOUR - 1) == (-1, 0)


@pytest.mark.parametrize("column", [TS, LOCAL], ids=["timestamp", "timestamp_ntz"])
def test_dates_beyond_the_ends_of_times(column: Column) -> None:
    day = Cast(column, DATE, "ANSI", "UTC")
    first, last = -(1 << 63) // A_DAY, ((1 << 63) - 1) // A_DAY
    assert said_of_argument(">=", day, last + 1) == Constant(False)
    assert said_of_argument(">=", day, last) == Comparison(">=", column, Literal(last * A_DAY, column.type))
    assert said_of_argument("<=", day, last) is None
    assert said_of_argument("<=", day, last - 1) is not None
    assert said_of_argument("<=", day, first - 1) == Constant(False)
    assert said_of_argument("<=", day, first) == Comparison("<=", column, Literal((first + 1) * A_DAY - 1, column.type))
    assert said_of_argument(">=", day, first) is None
    assert said_of_argument(">=", day, first + 1) is not None


@pytest.mark.parametrize(("column", "target"), [(TS, NTZ), (LOCAL, TIMESTAMP)], ids=["timestamp", "timestamp_ntz"])
def test_times_at_the_ends_of_their_type(column: Column, target: DataType) -> None:
    other = Cast(column, target, "ANSI", "UTC")
    least, most = -(1 << 63), (1 << 63) - 1
    assert said_of_argument(">=", other, most) == Comparison(">=", column, Literal(most, column.type))
    assert said_of_argument("<=", other, least) == Comparison("<=", column, Literal(least, column.type))
    assert said_of_argument(">", other, most) == said_of_argument("<", other, least) == Constant(False)
    assert said_of_argument("<=", other, most) is said_of_argument(">=", other, least) is None
