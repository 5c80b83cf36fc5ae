"""`Induced`: no object with a row that matches a filter on the dimension is skipped, and none of another listing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from es_skipping.clauses.clause import KEEP, Ask
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.clauses.metadata import Values
from es_skipping.clauses.questions import OtherThan
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.induced import MAX_BITS, Induced
from es_skipping.indexes.registry import from_definition, index_id, readable_id
from es_skipping.lookup.induced import listing_digest, snapshot_digest
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.tree import And, Call, Column, Comparison, IsIn, Literal, Not, NullTest, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.testing import IndexContract, Setup

INT, BOOLEAN = DataType("int"), DataType("boolean")
X, Y = Column(("x",), INT), Column(("y",), INT)
CUTS = (10, 20, 30)
KEY = ForeignKey("k", "dimension.id")


def index(snapshot: str = "now") -> Induced:
    """One condition, ``y = 1``, and ranges of x."""
    condition = Call("equalto", (Y, Literal(1, INT)), BOOLEAN)
    resolved = {
        "hops": [],
        "conditions": [operand_to_data(condition)],
        "bounds": [{"operand": operand_to_data(X), "cuts": list(CUTS)}],
    }
    return Induced(KEY, conditions=["y = 1"], bounds=["x"], ranges=4, resolved=json.dumps(resolved), snapshot=snapshot)


def keyed() -> Induced:
    """Ranges of c0."""
    bound = {"operand": operand_to_data(Column(("c0",), INT)), "cuts": list(CUTS)}
    resolved = json.dumps({"hops": [], "conditions": [], "bounds": [bound]})
    return Induced(KEY, bounds=["c0"], ranges=4, resolved=resolved, snapshot="now")


def metadata(rows: list[tuple[int | None, int | None]], snapshot: str = "now") -> Any:
    """Of an object that refers to these rows of the dimension, (x, y)."""
    words = []
    for x, y in rows:
        word = int(y == 1)
        if x is not None:
            word |= 2 << sum(x >= cut for cut in CUTS)
        words.append(word)
    collector = index(snapshot).collector((INT,))
    half = len(words) // 2
    parts = [collector.partial([pa.array(some, pa.int64())]) for some in (words[:half], words[half:])]
    return collector.finish(collector.merge(*parts))


def kept(predicate: Predicate, of: Any, snapshot: str = "now") -> bool:
    asked = index(snapshot)
    target = Target("induced", asked.operands, tuple(one.type for one in asked.operands))
    clause = merge_clause(normalise(predicate), [Labeller(asked, target)])
    return holds(clause, {"induced": of}) is not False


def compared(column: Column, comparator: Any, value: int) -> Predicate:
    return Comparison(comparator, column, Literal(value, INT))


def truth(predicate: Predicate, x: int | None, y: int | None) -> bool | None:
    match predicate:
        case Comparison(comparator, left, Literal(int() as value)):
            own = x if left == X else y
            if own is None:
                return None
            tests = {"<": own < value, "<=": own <= value, ">": own > value, ">=": own >= value, "=": own == value}
            return {**tests, "<>": own != value}[comparator]
        case IsIn(left, values):
            own = x if left == X else y
            return None if own is None else own in values
        case NullTest(left, negated):
            return ((x if left == X else y) is None) != negated
        case Not(child):
            found = truth(child, x, y)
            return None if found is None else not found
        case And(children) | Or(children):
            found_all = [truth(child, x, y) for child in children]
            decided = isinstance(predicate, Or)
            return decided if decided in found_all else None if None in found_all else not decided
    raise AssertionError(predicate)


def drawn(dice: random.Random, depth: int = 0) -> Predicate:
    if depth < 2 and dice.random() < 0.5:
        parts = (drawn(dice, depth + 1), drawn(dice, depth + 1))
        return dice.choice((And(parts), Or(parts), Not(parts[0])))
    column = dice.choice((X, Y))
    if dice.random() < 0.15:
        return NullTest(column, negated=dice.random() < 0.5)
    most = 40 if column == X else 3
    if dice.random() < 0.2:
        return IsIn(column, tuple({dice.randint(0, most) for _ in range(3)}))
    return compared(column, dice.choice(("<", "<=", ">", ">=", "=", "<>")), dice.randint(0, most))


class TestContract(IndexContract):
    """Of a dimension whose key and only column is the indexed column."""

    setups: ClassVar[Sequence[Setup]] = [(keyed(), (INT,))]
    refused: ClassVar[Sequence[tuple[str, ...]]] = [("double",), ("boolean",)]

    def select(self, index: Index, columns: Sequence[list[Any]], types: Sequence[DataType]) -> list[pa.Array]:
        words = [0 if value is None else 1 << sum(value >= cut for cut in CUTS) for value in columns[0]]
        return [pa.array(words, pa.int64())]


def test_no_matching_row_is_skipped() -> None:
    dice = random.Random(23)
    skipped = 0
    for _ in range(4_000):
        predicate = drawn(dice)
        low = dice.randint(0, 35)
        rows = [
            (None if dice.random() < 0.2 else dice.randint(low, low + 5), dice.choice((None, 0, 1, 2)))
            for _ in range(dice.randint(0, 4))
        ]
        of = metadata(rows)
        if any(truth(predicate, *row) for row in rows):
            assert kept(predicate, of), (predicate, rows)
        skipped += not kept(predicate, of)
        assert kept(predicate, metadata(rows, "before")) or normalise(predicate) == normalise(
            And((predicate, Not(predicate)))
        )
        assert kept(predicate, None) or skipped
    assert skipped > 500


@pytest.mark.parametrize(
    ("predicate", "skips"),
    [
        (compared(X, "<", 10), True),
        (compared(X, "<=", 10), False),
        (compared(X, ">=", 20), True),
        (compared(X, ">", 19), True),
        (compared(X, "=", 10), False),
        (compared(X, "<>", 3), False),
        (IsIn(X, (1, 2, 35)), True),
        (And((compared(X, ">", 3), compared(X, "<", 8))), True),
        (Or((compared(X, "<", 5), compared(X, ">", 31))), True),
        (Or((compared(X, "<", 5), compared(Y, "=", 0))), False),
        (compared(Y, "=", 1), True),
        (NullTest(X), False),
        (NullTest(X, negated=True), False),
    ],
)
def test_ranges_and_conditions(predicate: Predicate, skips: bool) -> None:
    """Of an object whose rows of the dimension have x between 10 and 19, and y = 0."""
    of = metadata([(10, 0), (15, 0), (19, None)])
    assert of == Values(frozenset({"of now", "2"}), nulls=0)
    assert kept(predicate, of) is not skips
    assert kept(predicate, of, "later")


def test_a_question_allows_everything_but_what_is_asked() -> None:
    asked = index("now").label(compared(Y, "=", 1), Target("i", index().operands, (BOOLEAN, INT)))
    assert asked == Ask("i", OtherThan(("of now", "1", "2", "3", "4")))
    assert index().label(NullTest(X), Target("i", index().operands, (BOOLEAN, INT))) in (None, KEEP)


def test_it_is_made_again_from_its_definition() -> None:
    made = index()
    again = from_definition(_definition(made))
    assert again == made
    assert again.at("later") != made
    assert readable_id(index_id(made, ["k"])).startswith("Induced(k, dimension, ")
    assert index_id(made, ["k"]) == index_id(made.at("later"), ["k"])
    assert str(made) == "Induced(k -> dimension.id: y = 1, x)"


def _definition(made: Induced) -> Any:
    from es_skipping.catalog import IndexDefinition

    return IndexDefinition("i", "Induced", ("k",), "values", DataType("string"), parameters=made.parameters)


def test_digests_do_not_depend_on_the_order_of_files() -> None:
    assert listing_digest([b"b" * 16, b"a" * 16]) == listing_digest([b"a" * 16, b"b" * 16])
    assert listing_digest([b"a" * 16]) != listing_digest([b"a" * 16, b"b" * 16])
    assert snapshot_digest(["x"]) == "x"
    assert snapshot_digest(["x", "y"]) != snapshot_digest(["y", "x"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"keys": (), "bounds": ["x"]},
        {"keys": (KEY,)},
        {"keys": (KEY,), "bounds": "x"},
        {"keys": (KEY,), "bounds": ["x"], "ranges": 1},
        {"keys": (KEY,), "bounds": ["x"], "ranges": MAX_BITS + 1},
        {"keys": (ForeignKey("t.k", "dimension.id"),), "bounds": ["x"]},
        {"keys": (KEY, KEY), "bounds": ["x"]},
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(IndexDefinitionError, match="Induced"):
        Induced(*arguments.pop("keys"), **arguments)
