"""The example of the page "Write an index", under the contract that is shipped; and filters for existing types."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trigrams
from hypothesis import strategies as st
from trigrams import MOST, Trigrams

from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes import filters
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.filters import filter_for, filters_of
from es_skipping.indexes.labels import Text, text_parts
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.tree import Call, Column, Holds, Matches, Predicate
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract, Setup
from es_skipping.testing.rows import Row

STRING, BOOLEAN = parse_type("string"), parse_type("boolean")
TEXT = Column(("c0",), STRING)


class TestTrigrams(IndexContract):
    setups: ClassVar[Sequence[Setup]] = [(Trigrams("c0"), (STRING,))]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("int",), ("binary",)]


def kept(values: list[Any], predicate: Predicate) -> bool:
    contract = TestTrigrams()
    setup = contract.setups[0]
    return contract.verdict(setup, contract.collect(setup, [[(value,) for value in values]]), predicate) is not False


@pytest.mark.parametrize(
    ("test", "pattern", "expected"),
    [
        ("contains", "timeout", True),
        ("contains", "time out", False),
        ("like", "%connect%time%", True),
        ("like", "%connect%disk%", False),
        ("like", "%_sk%", True),  # two characters are no trigram
        ("starts", "read", False),
        ("rlike", "^disk", False),
        ("rlike", "disk", True),  # nothing is known of a regular expression that is not anchored
    ],
)
def test_what_it_skips(test: Any, pattern: str, expected: bool) -> None:
    assert kept(["connect timeout", None, "ok"], Matches(test, TEXT, pattern)) is expected


def test_too_many_are_unknown() -> None:
    contract = TestTrigrams()
    many = [(f"{number:06}",) for number in range(2 * MOST)]
    collector = contract.setups[0][0].collector([STRING])
    grams = frozenset(str(number) for number in range(MOST))
    assert collector.finish((grams, 0)) == Values(grams, 0)
    assert collector.finish((grams | {"one more"}, 0)) is None
    assert contract.collect(contract.setups[0], [many]) is not None


def test_parts_of_patterns() -> None:
    assert text_parts(Text("like", "a!%b_cd%!!", "!")) == ("a%b", "cd", "!")
    assert text_parts(Text("like", "broken\\")) == ()
    assert text_parts(Text("contains", "%x")) == ("%x",)


# --- a filter for an existing index type ------------------------------------------------------------------------------

EU = ("AT", "DE", "FR")


def is_eu(node: Predicate, index: Index, target: Target) -> Clause | None:
    match node:
        case Holds(Call("udf:is_eu", (operand,), _, (("version", "1"),)), negated=False) if (
            operand == target.operands[0]
        ):
            return target.ask(AnyOf(EU))
    return None


@pytest.fixture(autouse=True)
def _leave_no_filter_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "_filters", {})
    filter_for(ValueList)(is_eu)


class TestValueListWithAFilter(IndexContract):
    """The contract holds for the index together with the filter: the same test, with leaves that only it knows."""

    setups: ClassVar[Sequence[Setup]] = [(ValueList("c0"), (STRING,))]
    leaves: ClassVar[Any] = st.booleans().map(lambda negated: Holds(call("1"), negated))

    def cells(self, type: Any) -> Any:
        return st.sampled_from([None, "AT", "FR", "CH", "US"])

    def truth(self, predicate: Predicate, row: Row) -> bool | None:
        assert isinstance(predicate, Holds)
        return None if row[TEXT] is None else (row[TEXT] in EU) != predicate.negated


def call(version: str) -> Call:
    return Call("udf:is_eu", (TEXT,), BOOLEAN, (("version", version),))


def test_a_filter_makes_an_index_understand_more() -> None:
    contract = TestValueListWithAFilter()
    setup = contract.setups[0]
    swiss = contract.collect(setup, [[("CH",)]])
    assert contract.verdict(setup, swiss, Holds(call("1"))) is False
    assert contract.verdict(setup, swiss, Holds(call("2"))) is True
    assert contract.verdict(setup, contract.collect(setup, [[("AT",)]]), Holds(call("1"))) is True


def test_a_filter_is_registered_once_and_only_for_index_types() -> None:
    assert filter_for(ValueList)(is_eu) is is_eu, "as a decorator it leaves the function as it is"
    assert list(filters_of(ValueList)) == [is_eu]
    with pytest.raises(IndexDefinitionError, match="not an index type"):
        filter_for(str)  # type: ignore[arg-type]
    with pytest.raises(IndexDefinitionError, match="is not a filter"):
        filter_for(ValueList)(5)  # type: ignore[type-var]


def test_an_installed_package_brings_filters_for_the_types_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        def __init__(self, name: str) -> None:
            self.name = name

        def load(self) -> Any:
            return is_eu

    monkeypatch.setattr(filters, "_filters", {})
    monkeypatch.setattr(filters, "entry_points", lambda group: [Point("ValueList.eu"), Point("ValueListOfTheirs")])
    assert list(filters_of(ValueList)) == [is_eu]
    assert list(filters_of(Trigrams)) == []


def test_a_filter_that_cannot_be_loaded_says_so_at_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "ValueList.eu"

        def __init__(self, found: Any) -> None:
            self._found = found

        def load(self) -> Any:
            if isinstance(self._found, Exception):
                raise self._found
            return self._found

    monkeypatch.setattr(filters, "_filters", {})
    monkeypatch.setattr(filters, "entry_points", lambda group: [Point(5), Point(ImportError("no such module"))])
    for found, why in zip(
        filters_of(ValueList), ("leads to 5, which is not a function", "ImportError: no such module")
    ):
        with pytest.raises(IndexDefinitionError, match=why):
            found(Matches("starts", TEXT, "a"), None, None)


def test_the_clause_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target("it", (TEXT,), (STRING,))
    assert is_eu(Holds(call("1")), ValueList("c0"), target) == Ask("it", AnyOf(EU))


def test_the_example_has_thirty_lines_at_most() -> None:
    """As the documentation counts the lines of the shipped types."""
    path = Path(__file__).parents[2] / "docs" / "generate.py"
    counted = runpy.run_path(str(path))["_lines_of_code"](inspect.getsource(trigrams))
    assert 20 < counted <= 30
