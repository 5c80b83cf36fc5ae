from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.evaluate import answer
from es_skipping.clauses.fingerprints import cell_of, cells_of, hash_of, low_bits, pack, space_for
from es_skipping.clauses.metadata import Fingerprints
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)


@st.composite
def sets_of_cells(draw: st.DrawFn) -> tuple[int, list[int]]:
    space = draw(st.one_of(st.integers(1, 300), st.integers(1, 2**40), st.sampled_from([1, 2, 64, 2**32, 2**32 + 1])))
    cells = draw(st.sets(st.one_of(st.integers(0, space - 1), st.just(0), st.just(space - 1)), max_size=200))
    return space, sorted(cells)


@given(sets_of_cells())
def test_packed_cells_come_back(drawn: tuple[int, list[int]]) -> None:
    space, cells = drawn
    packed = pack(cells, space)
    assert list(cells_of(packed, space, len(cells))) == cells
    bits = 2 + low_bits(space, len(cells)) + (1 if cells else 0)
    assert 8 * len(packed) <= len(cells) * bits + 16


def test_bytes_that_are_no_packed_cells_are_refused() -> None:
    packed = pack([3, 70, 99], 100)
    with pytest.raises(ValueError, match="packed"):
        list(cells_of(packed, 100, 2))
    with pytest.raises(ValueError, match="packed"):
        list(cells_of(b"", 100, 1))


@pytest.mark.parametrize(("count", "bits"), [(1000, 8.7), (1024, 8.7), (600, 9.4), (513, 9.7), (10_000, 9.4)])
def test_a_cell_takes_about_nine_bits(count: int, bits: float) -> None:
    space = space_for(count, 0.01)
    cells = sorted({cell_of(hash_of(value), space) for value in range(count)})
    assert 8 * len(pack(cells, space)) / count <= bits


@pytest.mark.parametrize("count", [250, 500, 513, 1000, 4000])
def test_false_positives_are_as_rare_as_promised(count: int) -> None:
    space = space_for(count, 0.01)
    cells = {cell_of(hash_of(f"value {n}"), space) for n in range(count)}
    asked = 100_000
    met = sum(cell_of(hash_of(f"other {n}"), space) in cells for n in range(asked))
    assert met / asked <= 0.012


def test_hashes_never_change() -> None:
    """They are stored."""
    assert [hash_of(value) for value in ("a", b"a", 1, -1, 2**63 - 1, 1.5, True, Decimal("1.50"))] == HASHES


HASHES = [
    9607679276477937801,
    9607679276477937801,
    19144387141682250,
    11593587578262711667,
    7815693464130447828,
    17465743298960357555,
    19144387141682250,
    1057346353965708524,
]


@pytest.mark.parametrize(
    ("one", "other"), [(0.0, -0.0), (Decimal("1.50"), Decimal("1.5")), (Decimal(0), Decimal("0E-38")), (5, 5)]
)
def test_equal_values_have_equal_hashes(one: float, other: float) -> None:
    assert hash_of(one) == hash_of(other)


HELD = Fingerprints(100, 2, pack([3, 70], 100), nulls=0, nans=None)


@pytest.mark.parametrize(
    ("question", "truth"),
    [
        (HasNull(), False),
        (HasNaN(), None),
        (HasNotNull(), True),
        (OtherThan((5,)), None),
        (Overlaps((Range(5, 6),)), None),
        (TextMatch("starts", "a"), None),
        (AnyOf(("half \ud800",)), None),
    ],
)
def test_what_fingerprints_cannot_tell_is_unknown(question: Question, truth: bool | None) -> None:
    assert answer(question, HELD) is truth


def test_a_value_whose_cell_is_empty_is_not_there() -> None:
    found = {answer(AnyOf((value,)), HELD) for value in range(1000)}
    assert found == {True, False}
    for value in range(1000):
        assert answer(AnyOf((value,)), HELD) is (cell_of(hash_of(value), 100) in (3, 70))


def test_the_space_is_of_the_next_power_of_two() -> None:
    spaces = [space_for(count, 0.01) for count in range(10)]
    assert spaces == [100, 100, 200, 400, 400, 800, 800, 800, 800, 1600]
    assert [space_for(1, fpp) for fpp in (0.5, 0.1, 0.999)] == [2, 10, 1]
