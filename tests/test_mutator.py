"""The mutants are what they say, places without meaning are left out, and the list of reasons does not rot."""

from __future__ import annotations

import ast

import pytest

from tests.generated_mutants import EQUIVALENT, candidates, equivalent
from tests.mutator import Mutant, mutants_of


def changes(source: str) -> set[str]:
    """What the mutants of a function's body change; those that return None for a value are a matter of course."""
    return {mutant.change for mutant in mutants_of(source) if not mutant.change.endswith("-> return None")}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"a < b -> a <= b"}),
        ("a < b <= c", {"a < b <= c -> a <= b <= c", "a < b <= c -> a < b < c"}),
        ("a == b", {"a == b -> a != b"}),
        ("a in b", {"a in b -> a not in b"}),
        ("a is b", {"a is b -> a is not b"}),
        ("a and b", {"a and b -> a or b"}),
        ("not a", {"not a -> a"}),
        ("a - b", {"a - b -> a + b"}),
        ("a & b", {"a & b -> a | b"}),
        ("'%d' % a", set()),
        ("True", {"True -> False"}),
        ("7", {"7 -> 8", "7 -> 6"}),
        ("[a, b]", {"without a in [a, b]", "without b in [a, b]"}),
        ("{a: b}", {"without a: in {a: b}"}),
        ("(a, b)", set()),
        ("f(a, b)", {"f(a, b) -> f(b, a)"}),
        ("f(a, a)", set()),
        ("f(*a, b)", set()),
        ("all(a)", {"all(a) -> any(a)"}),
        ("min(a, b)", {"min(a, b) -> max(a, b)"}),
        ("a if b else c", {"if b -> always", "if b -> never"}),
        ("[a for a in b if a]", {"for ... if a -> always"}),
    ],
)
def test_what_is_changed_of_an_expression(source: str, expected: set[str]) -> None:
    found = {change.removeprefix("x = ").replace(" -> x = ", " -> ") for change in changes(f"def f():\n x = {source}")}
    assert found == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if a: b = c", {"if a -> always", "if a -> never"}),
        ("while a: b = c", {"while a -> never"}),
        ("for a in b: continue", {"continue -> break"}),
        ("for a in b: break", {"break -> continue"}),
        ("a.append(b)", {"a.append(b) -> pass"}),
        ("a[b] = c", {"a[b] = c -> pass"}),
        ("raise ValueError(1 + 1)", {"raise ValueError(1 + 1) -> pass"}),
        ("del a", {"del a -> pass"}),
        ("for a in (b, c): d = a", {"without b in (b, c)", "without c in (b, c)"}),
        ("match a:\n  case 1 if b: c = d", {"case b -> always", "without case 1 if b"}),
    ],
)
def test_what_is_changed_of_a_statement(body: str, expected: set[str]) -> None:
    assert changes("def f():\n " + body.replace("\n", "\n ")) == expected


def test_other_returns_of_truth_values() -> None:
    source = "def f() -> {}:\n return {}"
    assert changes(source.format("bool", True)) == {"return True -> return False"}
    assert {mutant.change for mutant in mutants_of(source.format("bool | None", None))} == {
        "return None -> return True",
        "return None -> return False",
    }
    assert "return True -> return None" in {mutant.change for mutant in mutants_of(source.format("bool | None", True))}
    assert [mutant.change for mutant in mutants_of(source.format("int | None", "g()"))] == ["return g() -> return None"]


@pytest.mark.parametrize(
    "source",
    [
        '"""Of 1 and 2."""',
        "__all__ = ['a', 'b']",
        "Leaf: TypeAlias = A | B",
        "a: Literal[1] | B",
        "assert a < b",
        "if TYPE_CHECKING:\n import a",
        "class A:\n def __repr__(self): return f'{1 + 1}'",
        "class A:\n @abstractmethod\n def a(self): return 1",
        "_log.warning('%d', 1 + 1)",
        "isinstance(a, (B, C))",
        "@cache(maxsize=1)\nclass A: ...",
        "def f(): raise NotImplementedError",
        "LIMIT: Final = 64",
    ],
)
def test_places_without_meaning(source: str) -> None:
    assert mutants_of(source) == []


def test_a_small_number_is_no_limit() -> None:
    assert {mutant.change for mutant in mutants_of("DEPTH: Final = 4")} == {
        "DEPTH: Final = 4 -> DEPTH: Final = 5",
        "DEPTH: Final = 4 -> DEPTH: Final = 3",
    }
    assert [mutant.change for mutant in mutants_of("ROOM: Final = 1 << 20")] == [
        "ROOM: Final = 1 << 20 -> ROOM: Final = 1 >> 20"
    ]


def test_a_mutant_differs_in_one_place_and_knows_where() -> None:
    source = "class A:\n limit = 7\n @property\n def f(self):\n  return [a for a in self.b if a > 1]\n"
    found = mutants_of(source)
    assert [ast.unparse(mutant.make()) for mutant in found].count(ast.unparse(ast.parse(source))) == 0
    places = {mutant.change: (mutant.function, mutant.lines, mutant.outermost) for mutant in found}
    assert places["limit = 7 -> limit = 8"] == ("A", (2, 2), None)
    assert places["a > 1 -> a >= 1"] == ("A.f", (5, 5), ("f", 3))


def test_equal_changes_of_a_function_have_numbers() -> None:
    assert [mutant.change for mutant in mutants_of("x = 7, 7") if mutant.change.startswith("x = (7, 7) -> x = (8")] == [
        "x = (7, 7) -> x = (8, 7)"
    ]
    twice: list[Mutant] = mutants_of("def f():\n a.b()\n a.b()")
    assert [mutant.change for mutant in twice] == ["a.b() -> pass", "a.b() -> pass (number 2)"]
    assert [ast.unparse(mutant.make()).split("\n    ") for mutant in twice] == [
        ["def f():", "pass", "a.b()"],
        ["def f():", "a.b()", "pass"],
    ]


def test_each_reason_is_one_for_a_mutant_that_there_is() -> None:
    """An entry whose code has changed is looked at again: the change may have become one that tests must notice."""
    names = {candidate.name for candidate in candidates()}
    assert [name for name in equivalent() if name not in names] == [], f"{EQUIVALENT.name} names what there is not"
