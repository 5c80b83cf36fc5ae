"""Every class of node carries its operands, and every walk knows every class."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from es_skipping.predicates import tree
from es_skipping.predicates.codec import has_opaque, operand_from_data, operand_to_data, undeclared_functions
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.subsumption import is_certain, subsumes
from es_skipping.predicates.tree import (
    FLIPPED,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Constant,
    Element,
    HasElement,
    Holds,
    Implying,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Or,
    leaves_of,
    map_leaves,
    map_operands,
    operands_in,
    operands_of,
    parts_of,
    unknown_node,
    why_opaque,
)
from es_skipping.predicates.types import DataType
from es_skipping.predicates.value_sets import at_least, at_most
from es_skipping.testing.rows import cells, predicates, truth

PACKAGE = Path(tree.__file__).parents[1]
INT, STRING, BOOLEAN = DataType("int"), DataType("string"), DataType("boolean")
X, Y, S = Column(("x",), INT), Column(("y",), INT), Column(("s",), STRING)
ONE = Literal(1, INT)
CALL = Call("is_odd", (X, Y), BOOLEAN)
UNDECLARED = Call("udf:f", (X,), INT)
XS = Column(("xs",), DataType("array"))
ELEMENT = Element(XS, INT)

NODES: list[tuple[Any, tuple[Any, ...]]] = [
    (X, ()),
    (ONE, ()),
    (ELEMENT, (XS,)),
    (Cast(X, STRING), (X,)),
    (CALL, (X, Y)),
    (Opaque("?"), ()),
    (Constant(True), ()),
    (Comparison("<", X, ONE), (X, ONE)),
    (IsIn(X, (1, 2)), (X,)),
    (NullTest(X), (X,)),
    (Matches("starts", S, "a"), (S,)),
    (Holds(CALL), (CALL,)),
    (HasElement(XS, Comparison("<", ELEMENT, X)), (XS, ELEMENT, X)),
    (Implying(NullTest(X), NullTest(Y), NullTest(S)), (X, Y, S)),
    (And((NullTest(X), Or((NullTest(Y), NullTest(S))))), (X, Y, S)),
    (Or((NullTest(X), And((NullTest(Y), NullTest(X))))), (X, Y, X)),
    (Not(Comparison("=", X, Y)), (X, Y)),
]
"""A node of each class, and the operands in it."""

OPERANDS: set[type] = set(get_args(tree.Operand))
CLASSES: set[type] = OPERANDS | set(get_args(tree.Predicate))
each_node = pytest.mark.parametrize(("node", "operands"), NODES, ids=lambda value: type(value).__name__)


def marked(operand: Any) -> Any:
    """Another operand, which shows that it was changed."""
    return replace(operand, name="changed") if isinstance(operand, Call) else Column(("changed",), operand.type)


def test_every_class_is_tried() -> None:
    assert {type(node) for node, _ in NODES} == CLASSES
    assert {cls for cls in vars(tree).values() if isinstance(cls, type) and cls.__module__ == tree.__name__} == {
        *CLASSES,
        tree._Connective,
        tree._WithoutOperands,
    }


@each_node
def test_a_node_carries_its_operands(node: Any, operands: tuple[Any, ...]) -> None:
    assert node.operands == operands == operands_in(node)
    assert why_opaque(node) == ("?" if isinstance(node, Opaque) else None)


@each_node
def test_no_operand_is_held_that_is_not_among_them(node: Any, operands: tuple[Any, ...]) -> None:
    """A new field that holds an operand is one that the walks must see."""
    pending = [getattr(node, field.name) for field in fields(node)]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
        elif type(value) in OPERANDS:
            assert value in operands
        elif type(value) in CLASSES:
            pending.extend(getattr(value, field.name) for field in fields(value))


@each_node
def test_a_node_is_made_of_changed_operands(node: Any, operands: tuple[Any, ...]) -> None:
    changed = node.map_operands(marked)
    assert type(changed) is type(node)
    assert changed.operands == tuple(map(marked, operands))
    assert node.map_operands(lambda operand: operand) == node
    if type(node) not in OPERANDS:
        assert map_operands(node, marked) == changed


@each_node
def test_an_undeclared_function_anywhere_in_it_is_found(node: Any, operands: tuple[Any, ...]) -> None:
    """So that no class of node is certain while something in it is not."""
    hidden = replace(UNDECLARED, type=BOOLEAN)
    changed = node.map_operands(lambda operand: hidden)
    if type(node) in OPERANDS:
        assert undeclared_functions(changed) == (("f",) if operands else ())
        assert not has_opaque(changed) or isinstance(node, Opaque)
    elif operands:
        assert not is_certain(changed)
        assert not subsumes(changed, changed)


@each_node
def test_every_walk_takes_it(node: Any, operands: tuple[Any, ...]) -> None:
    assert "unknown" not in show(node)
    if type(node) in OPERANDS:
        assert next(iter(parts_of(node))) == node
        assert operand_from_data(operand_to_data(node)) == node
        return
    assert "unknown" not in show(normalise(node))
    assert set(operands_of(node)) == {operand for operand in operands if not isinstance(operand, Literal)}
    assert at_least(normalise(node), X) <= at_most(normalise(node), X)


def test_every_comparator_has_one_that_says_the_same_of_exchanged_sides() -> None:
    """The null-safe one too: subsumption exchanges the sides of whatever it is given."""
    assert {FLIPPED[FLIPPED[one]] for one in get_args(tree.Comparator)} == set(get_args(tree.Comparator))
    x, y = (Column((name,), DataType("int")) for name in "xy")
    assert subsumes(Comparison("<=>", x, y), Comparison("<=>", y, x))


def test_leaves_are_walked_from_left_to_right() -> None:
    first, second, third = NullTest(X), NullTest(Y), NullTest(S)
    nested = And((first, Or((Not(second), And((third, first))))))
    assert list(leaves_of(nested)) == [first, second, third, first]
    assert list(leaves_of(first)) == [first]
    assert map_leaves(nested, lambda leaf: third) == And((third, Or((Not(third), And((third, third))))))
    deep: Any = first
    for _ in range(50_000):
        deep = Not(deep)
    assert list(leaves_of(deep)) == [first]


def test_a_node_of_no_known_class_is_opaque() -> None:
    assert unknown_node("text") == Opaque("unknown node str")  # type: ignore[arg-type]
    assert why_opaque("text") == "unknown node str"  # type: ignore[arg-type]
    assert operands_in("text") == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("alias", "walks"),
    [("Predicate", {"normal.py", "show.py", "tree.py"}), ("Operand", {"codec.py", "show.py", "tree.py"})],
)
def test_a_type_checker_finds_the_walks_that_a_new_class_must_be_added_to(
    tmp_path: Path, alias: str, walks: set[str]
) -> None:
    """As for somebody who adds a class of node, and knows of no walk."""
    package = tmp_path / "es_skipping"
    shutil.copytree(PACKAGE / "predicates", package / "predicates", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE / "errors.py", package)
    (package / "__init__.py").touch()
    file = package / "predicates" / "tree.py"
    text, found = re.subn(
        rf"^{alias}: TypeAlias = (?:\([^)]*\)|.*)$",  # on one line, or on several in parentheses
        r"@dataclass(frozen=True)\nclass New:\n    operand: Operand\n    type: DataType\n\n\n\g<0> | New",
        file.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert found == 1
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "es_skipping"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (
        set(re.findall(r"^es_skipping/predicates/(\w+\.py):\d+: error: .*\"New\"", done.stdout, re.MULTILINE)) >= walks
    )


# --- the random filters of the shipped contract -------------------------------------------------------------------

DRAWN = CLASSES - OPERANDS - {And, Or, Not, Implying, Constant, Holds, HasElement}
"""The leaves that `es_skipping.testing.rows` must draw by itself. Calls come from `IndexContract.leaves`, conditions on
elements from ``tests/predicates/test_elements.py``."""


def test_random_filters_have_each_leaf_and_not_turns_it_round() -> None:
    """Else no index contract tries a new class of node, and a wrong clause or a wrong NOT passes every test."""
    columns = (X, S)
    drawn: Counter[type] = Counter()

    def opaque(predicate: Any, row: Any) -> None:
        """Nothing is known of an opaque node: null, which keeps."""
        assert isinstance(predicate, Opaque)

    @given(data=st.data())
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def each(data: st.DataObject) -> None:
        row = dict(zip(columns, data.draw(st.tuples(cells(INT), cells(STRING))), strict=True))
        for _ in range(10):
            leaf = data.draw(predicates(columns, [row], depth=0))
            drawn[type(leaf)] += 1
            held = truth(leaf, row)
            assert truth(normalise(leaf), row, opaque) in (held is True, None), (leaf, row)
            assert truth(normalise(Not(leaf)), row, opaque) in (held is False, None), (leaf, row)

    each()
    missing = {cls.__name__ for cls in DRAWN if not drawn[cls]}
    assert not missing, f"draw {missing} in `predicates`, and decide them in `truth`, of es_skipping/testing/rows.py"
