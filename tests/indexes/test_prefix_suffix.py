"""`Prefix` and `Suffix`, which are mirror images where they can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from es_skipping.clauses.metadata import Values
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.suffix import Suffix
from es_skipping.predicates.tree import (
    Column,
    Comparison,
    IsIn,
    Literal,
    Matches,
    NullTest,
    Predicate,
)
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.rows import arrow_array
from tests.indexes.test_minmax import not_utf8

STRING = parse_type("string")
S = Column(("c0",), STRING)


class _Ends(IndexContract):
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("int",), ("binary",), ("date",)]

    def select(self, index: Index, columns: Sequence[list[Any]], types: Sequence[DataType]) -> list[pa.Array]:
        def cut(value: str) -> str:
            return value[: index.length] if isinstance(index, Prefix) else value[-index.length :]  # type: ignore[attr-defined]

        return [arrow_array([None if v is None else cut(v) for v in columns[0]], types[0])]


class TestPrefixContract(_Ends):
    setups: ClassVar[Sequence[Setup]] = [(Prefix("c0", length), (STRING,)) for length in (1, 2, 3, 15)]


class TestSuffixContract(_Ends):
    setups: ClassVar[Sequence[Setup]] = [(Suffix("c0", length), (STRING,)) for length in (1, 2, 3, 15)]


def keeps(index: Index, values: list[str | None], predicate: Predicate) -> bool:
    contract, setup = _Ends(), (index, (STRING,))
    return contract.verdict(setup, contract.collect(setup, [[(value,) for value in values]]), predicate) is not False


def text(test: Any, pattern: str, *, negated: bool = False) -> Predicate:
    return Matches(test, S, pattern, negated=negated)


def compare(comparator: Any, value: str) -> Predicate:
    return Comparison(comparator, S, Literal(value, STRING))


@pytest.mark.parametrize(
    ("values", "predicate", "kept"),
    [
        (["tenant1", "tenant2"], text("starts", "te"), True),
        (["tenant1", "tenant2"], text("starts", "to"), False),
        (["tenant1", "tenant2"], text("starts", "texture"), False),
        (
            ["tenant1", "tenant2"],
            text("starts", "tenx"),
            True,
        ),  # "ten" is all there is to know
        (["tenant1"], compare("=", "tenant9"), True),
        (["tenant1"], compare("=", "teNant1"), False),
        (
            ["tenant1"],
            compare("=", "ten"),
            True,
        ),  # the remembered "ten" may be a cut or a whole value
        (["te"], compare("=", "ten"), False),
        (["tenant1"], IsIn(S, ("a", "tex", "b")), False),
        (["tenant1"], IsIn(S, ("a", "tenx", "b")), True),
        # negations: only what is shorter than the length is known to be the whole value
        (["te"], compare("<>", "te"), False),
        (["te", "tenant"], compare("<>", "te"), True),
        (["ten", "ten"], compare("<>", "ten"), True),
        (["tenant", "tenor"], compare("<>", "ten"), True),
        (["te", "a"], IsIn(S, ("te", "a", "ten"), negated=True), False),
        (["te", "ten"], IsIn(S, ("te", "a", "ten"), negated=True), True),
        (["tenant", "tempo"], text("starts", "te", negated=True), False),
        (["tenant", "tao"], text("starts", "te", negated=True), True),
        (["tenant"], text("starts", "tena", negated=True), True),
        (["tenant"], text("like", "ten%", negated=True), False),
        (["tenant"], text("like", "t%t", negated=True), True),
        # LIKE and RLIKE by their literal beginning
        (["tenant"], text("like", "to%x"), False),
        (["tenant"], text("like", "te_y%"), True),
        (["tenant"], text("rlike", "^to+"), False),
        (["tenant"], text("rlike", "to+"), True),
        # ranges
        (["b1234", "c1234"], compare("<", "b"), False),
        (["b1234", "c1234"], compare("<=", "b1234"), True),
        (["b1234", "c1234"], compare(">", "c12"), True),
        (["b1234", "c1234"], compare(">", "c129"), True),  # cut to "c12"
        (["b1234", "c1234"], compare(">", "c13"), False),
        (
            ["b1234", "c1234"],
            compare("<", "b12"),
            False,
        ),  # "b12" itself may be all of a value, but is not below
        (["b1234", "c1234"], compare(">=", "d"), False),
        (["b"], compare(">", "b"), False),
        # the other end says nothing, NULL does
        (["tenant"], text("ends", "zz"), True),
        ([None], text("ends", "zz"), False),
        ([None], compare("<>", "tenant"), False),
        (["a"], NullTest(S), False),
    ],
)
def test_what_a_prefix_of_three_keeps(values: list[str | None], predicate: Predicate, kept: bool) -> None:
    assert keeps(Prefix("c0", 3), values, predicate) is kept


@pytest.mark.parametrize(
    ("values", "predicate", "kept"),
    [
        (["a.csv", "b.txt"], text("ends", "csv"), True),
        (["a.csv", "b.txt"], text("ends", "xml"), False),
        (["a.csv", "b.txt"], text("ends", "t"), True),
        (["a.csv"], text("ends", "b.csv"), True),
        (["a.csv"], text("ends", "a.cs"), False),
        (["a.csv"], text("like", "%xml"), False),
        (["a.csv"], text("like", "a%xml"), False),
        (["a.csv"], text("like", "a%csv"), True),
        (["a.csv", "b.csv"], text("ends", "csv", negated=True), False),
        (["a.csv", "b.txt"], text("ends", "csv", negated=True), True),
        (["a.csv"], text("ends", ".csv", negated=True), True),
        (["a.csv"], compare("=", "b.txt"), False),
        (["a.csv"], compare("=", "b.csv"), True),
        (["sv"], compare("<>", "sv"), False),
        (["csv"], compare("<>", "csv"), True),
        (["a.csv"], IsIn(S, ("x", "y")), False),
        # order and beginning say nothing here
        (["a.csv"], compare("<", "A"), True),
        (["a.csv"], text("starts", "zz"), True),
        # RLIKE by its literal end, and a line break that Java's $ may stand before
        (["a.csv"], text("rlike", "xml$"), False),
        (["a.csv"], text("rlike", "^a.*csv$"), True),
        (["a.csv"], text("rlike", "b[.]csv$"), True),
        (["a.csv"], text("rlike", "xml"), True),
        (["a.csv"], text("rlike", "xm?$"), True),
        (["a.csv"], text("rlike", "(csv|xml)$"), True),
        (["a.csv"], text("rlike", r"xml\$"), True),
        (["a.csv"], text("rlike", "xml$", negated=True), True),
        (["a.xml\n"], text("rlike", "xml$"), True),
        (["a.xml\r\n"], text("rlike", "l$"), True),
        (["a.xml\u2028"], text("rlike", "ml$"), True),
        ([None], compare("<", "A"), False),
    ],
)
def test_what_a_suffix_of_three_keeps(values: list[str | None], predicate: Predicate, kept: bool) -> None:
    assert keeps(Suffix("c0", 3), values, predicate) is kept


@pytest.mark.parametrize("cls", [Prefix, Suffix])
def test_bytes_that_are_no_utf8_are_unknown(cls: type[Prefix | Suffix]) -> None:
    collector = cls("x", 5).collector([STRING])
    assert collector.finish(collector.partial([not_utf8(b"a", b"\xff")])) is None


@pytest.mark.parametrize("length", [1, 3])
def test_ends_of_arrays(length: int) -> None:
    texts = [None, "", "a", "ab", "abc", "abcd", "\U0001f600\u00e9bc", "abc\U0001f600"]
    column = pa.array(texts, pa.string())
    assert Prefix("c0", length=length).collected_arrays([column])[0].to_pylist() == [t and t[:length] for t in texts]
    assert Suffix("c0", length=length).collected_arrays([column])[0].to_pylist() == [t and t[-length:] for t in texts]


@pytest.mark.parametrize("cls", [Prefix, Suffix])
def test_an_object_over_the_limit_is_unknown(cls: type[Prefix | Suffix]) -> None:
    collector = cls("x", 5, limit=2).collector([STRING])
    two = collector.partial([pa.array(["a", "b", None])])
    assert collector.finish(two) == Values(frozenset({"a", "b"}), 1)
    assert collector.finish(collector.merge(two, collector.partial([pa.array(["c"])]))) is None


@pytest.mark.parametrize("cls", [Prefix, Suffix])
@pytest.mark.parametrize("length", [0, -3, 1.5, "4", True, None])
def test_the_length_is_a_positive_number(cls: Any, length: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="length"):
        cls("x", length)
