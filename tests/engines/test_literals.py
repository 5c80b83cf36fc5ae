"""Each constant of a filter spans what any engine may compare with."""

from __future__ import annotations

import random
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from es_skipping.engines.literals import Refused, date_span, moment_span, number_span
from es_skipping.predicates.codec import float32
from es_skipping.predicates.types import DataType, parse_type

INT, FLOAT, DOUBLE = DataType("int"), DataType("float"), DataType("double")


@pytest.mark.parametrize("seed", range(3))
def test_no_engine_compares_a_double_with_a_number_beyond_the_span(seed: int) -> None:
    chance = random.Random(seed)
    texts = [f"{Decimal(chance.randint(1, 10**15 - 1)).scaleb(-chance.randint(0, 20)):f}" for _ in range(500)]
    query = ", ".join(f"{text}::DOUBLE" for text in texts)
    found = duckdb.sql(f"SELECT unnest([{query}])").fetchall()
    for text, (in_duckdb,) in zip(texts, found, strict=True):
        span = number_span(text, False, DOUBLE)
        in_arrow = pa.scalar(Decimal(text)).cast(pa.float64()).as_py()
        for value in (in_duckdb, in_arrow, float(text)):
            assert span.low <= value <= span.high, text
            assert not span.exact or value == span.low


@pytest.mark.parametrize("text", ["0.1", "0.25", "16777217", "3.3e-20", "0", "0.30000001192093", "33554433.0"])
@pytest.mark.parametrize("negative", [False, True])
def test_a_float_spans_its_neighbours(text: str, negative: bool) -> None:
    span = number_span(text, negative, FLOAT)
    value = -float(text) if negative else float(text)
    assert isinstance(span.low, float) and isinstance(span.high, float)
    assert float32(span.low) == span.low <= value <= span.high == float32(span.high)
    assert span.low <= float32(value) <= span.high


def test_pyarrow_misses_the_nearest_double_of_a_decimal() -> None:
    """The reason that a fraction spans several doubles; if this fails one day, it need not any more."""
    table = pa.table({"x": [float(f"{n / 100:.2f}") for n in range(10_000)]})
    missed = [n for n in range(300) if not table.filter(pc.field("x") == Decimal(n).scaleb(-2)).num_rows]
    assert missed


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("3000000000", "int"),
        ("1.23456789012345678", "double"),
        ("1e400", "double"),
        ("1e39", "float"),
        ("99999999999999999.5", "bigint"),
        ("12345678901234567", "decimal(25,4)"),
        ("1000", "decimal(5,2)"),
        ("1", "string"),
        ("1_000", "int"),
    ],
)
def test_numbers_that_engines_may_confuse_are_refused(text: str, type: str) -> None:
    with pytest.raises(Refused):
        number_span(text, False, parse_type(type))


@pytest.mark.parametrize("text", ["2026-1-1", "2026-02-30", "20260101", "0000-01-01", "+2026-01-01", "2026-01-01 "])
def test_dates_in_other_forms_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        date_span(text)


@pytest.mark.parametrize("text", ["2026-01-01 25:00", "2026-01-01 10", "now", "2026-01-01 00:00:00.1234567", "12:00"])
def test_times_in_other_forms_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        moment_span(text, DataType("timestamp_ntz"))


def test_a_time_with_a_zone_is_not_compared_with_one_without() -> None:
    with pytest.raises(Refused, match="zone"):
        moment_span("2026-01-01 00:00:00Z", DataType("timestamp_ntz"))


def test_a_time_without_a_zone_spans_all_zones() -> None:
    span = moment_span("1970-01-01T00:00:00", DataType("timestamp"))
    assert (span.low, span.high, span.exact) == (-64_800_000_000, 64_800_000_000, False)
    east = moment_span("1970-01-01 00:00:00+02:00", DataType("timestamp"))
    assert east.high == 57_600_000_000
