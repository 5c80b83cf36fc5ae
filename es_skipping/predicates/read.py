"""From the trees that Catalyst sends to typed predicates and operands.

The form of the trees is in ``docs/decisions/0001-bridge-protocol.md``. Nothing here raises: what is malformed, too deep
or not understood becomes `Opaque`, with the reason. Null is kept apart from false wherever Spark keeps it apart, so a
predicate read may stand under any number of NOTs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from es_skipping.predicates import reasons
from es_skipping.predicates.certainty import certain, null_of
from es_skipping.predicates.codec import value_from_data
from es_skipping.predicates.lambdas import TESTS, with_implied, with_implied_size
from es_skipping.predicates.normal import MAX_DEPTH
from es_skipping.predicates.operands import (
    TRANSPARENT,
    Tree,
    UnreadableTree,
    child_of,
    children_of,
    class_of,
    operand_of,
    read_operand,
    reason_of,
    scalars_of,
    text_of,
)
from es_skipping.predicates.tree import (
    ALWAYS,
    NEVER,
    And,
    Call,
    Comparator,
    Comparison,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Opaque,
    Operand,
    Or,
    Predicate,
    TextTest,
)
from es_skipping.predicates.types import DataType, Value, parse_type

__all__ = ["read_conjunction", "read_operand", "read_predicate"]

_BOOLEAN: Final = DataType("boolean")
_STRING: Final = DataType("string")
_TRUE: Final = Literal(True, _BOOLEAN)
_NULL: Final = Comparison("=", Literal(None, _BOOLEAN), _TRUE)
"""The predicate that is null for every row."""

_COMPARISONS: Final[dict[str, Comparator]] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TEXT_TESTS: Final[dict[str, TextTest]] = {
    "StartsWith": "starts",
    "EndsWith": "ends",
    "Contains": "contains",
    "Like": "like",
    "RLike": "rlike",
}
_MANY_LIKES: Final = {
    "LikeAll": (True, False),
    "NotLikeAll": (True, True),
    "LikeAny": (False, False),
    "NotLikeAny": (False, True),
}
_MAX_DISJUNCTS: Final = 100
_MAX_BRANCHES: Final = 16
_MAX_CONDITIONALS: Final = 2


def read_predicate(tree: Any) -> Predicate:
    """Read one filter.

    Parameters
    ----------
    tree
        As the bridge sends it.

    Examples
    --------
    >>> read_predicate({"c": "IsNotNull", "ch": [{"c": "AttributeReference", "t": "int", "name": "x"}]})
    NullTest(operand=Column(path=('x',), type=DataType(name='int', precision=0, scale=0)), negated=True)
    """
    return _guarded(_predicate, tree, 0, 0)


def read_conjunction(trees: Any) -> Predicate:
    """Read a list of filters that must all hold."""
    if not isinstance(trees, Sequence) or isinstance(trees, str):
        return Opaque("malformed: a list of filters was expected")
    parts = tuple(read_predicate(tree) for tree in trees)
    if len(parts) == 1:
        return parts[0]
    return And(parts) if parts else ALWAYS


def _guarded(read: Callable[[Any, int, int], Predicate], tree: Any, depth: int, conditionals: int) -> Predicate:
    try:
        return read(tree, depth, conditionals)
    except RecursionError:
        return Opaque(reasons.TOO_DEEP.text)
    except (UnreadableTree, KeyError, TypeError, ValueError, AttributeError) as error:
        return Opaque(reason_of(error))


# --- predicates ---------------------------------------------------------------------------------------------------


def _predicate(tree: Any, depth: int, conditionals: int) -> Predicate:
    if depth > MAX_DEPTH:
        return Opaque(reasons.TOO_DEEP.text)
    negated = False
    name = class_of(tree)
    while name == "Not" or name in TRANSPARENT:
        negated ^= name == "Not"
        tree = child_of(tree)
        name = class_of(tree)
    predicate = _connective(tree, name, depth, conditionals)
    return Not(predicate) if negated else predicate


def _connective(tree: Tree, name: str, depth: int, conditionals: int) -> Predicate:
    if name not in {"And", "Or"}:
        return _leaf(tree, name, depth, conditionals)
    parts: list[Predicate] = []
    pending: list[Any] = [tree]
    while pending:  # a chain of one connective is one node, however it was nested
        part = pending.pop()
        if isinstance(part, Mapping) and part.get("c") == name and "p" not in part:
            children = part.get("ch")
            if isinstance(children, list) and children:
                pending.extend(reversed(children))
            else:
                parts.append(Opaque(f"malformed: {name} without operands"))
        else:
            parts.append(_guarded(_predicate, part, depth + 1, conditionals))
    return And(tuple(parts)) if name == "And" else Or(tuple(parts))


def _leaf(tree: Tree, name: str, depth: int, conditionals: int) -> Predicate:
    if name in _COMPARISONS:
        return _comparison_of_sizes(tree, name, depth, conditionals)
    if name in {"IsNull", "IsNotNull"}:
        return _null_test(tree, name == "IsNotNull", depth, conditionals)
    if name == "In":
        return _in(tree)
    if name == "InSet":
        return _in_set(tree)
    if name == "IsNaN":
        operand = operand_of(child_of(tree), 0)
        return Comparison("<=>", operand, Literal(value_from_data("NaN", operand.type), operand.type))
    if name in _TEXT_TESTS:
        return _text_test(tree, _TEXT_TESTS[name])
    if name in _MANY_LIKES:
        return _many_likes(tree, *_MANY_LIKES[name])
    if name in {"If", "CaseWhen"}:
        return _case(tree, name, depth, conditionals)
    if name == "Coalesce":
        return _coalesce(tree, depth, conditionals)
    exact = _truth_of(operand_of(tree, 0))
    if name in TESTS:
        read = partial(_guarded, _predicate, depth=depth + 1, conditionals=conditionals)
        return with_implied(tree, exact, read)
    return exact


def _truth_of(operand: Operand) -> Predicate:
    """A boolean operand as a predicate."""
    if isinstance(operand, Opaque):
        return operand
    if operand.type != _BOOLEAN:
        raise UnreadableTree(f"{operand.type} as a condition")
    if isinstance(operand, Literal):
        return _NULL if operand.value is None else (ALWAYS if operand.value else NEVER)
    if isinstance(operand, Call):
        return Holds(operand)
    return Comparison("=", operand, _TRUE)


def _is_condition(tree: Any) -> bool:
    """Whether a tree computes a truth value, rather than being a column, a field, a literal or a cast."""
    name = class_of(tree)
    while name in TRANSPARENT:
        tree = child_of(tree)
        name = class_of(tree)
    return tree.get("t") == "boolean" and name not in {"AttributeReference", "GetStructField", "Literal", "Cast"}


def _comparison(tree: Tree, name: str, depth: int, conditionals: int) -> Predicate:
    left, right = children_of(tree, 2)
    if name in {"EqualTo", "EqualNullSafe"}:
        if _is_condition(right):
            left, right = right, left
        if _is_condition(left) and class_of(right) == "Literal" and right.get("t") == "boolean":
            condition = _guarded(_predicate, left, depth + 1, conditionals)
            return _compared_truth(condition, right.get("v"), null_safe=name == "EqualNullSafe")
        left, right = children_of(tree, 2)
    return _compare(_COMPARISONS[name], operand_of(left, 0), operand_of(right, 0))


def _comparison_of_sizes(tree: Tree, name: str, depth: int, conditionals: int) -> Predicate:
    exact = _comparison(tree, name, depth, conditionals)
    left, right = children_of(tree, 2)
    if "Size" not in (class_of(left), class_of(right)):
        return exact
    read = partial(_guarded, _predicate, depth=depth + 1, conditionals=conditionals)
    return with_implied_size(left, _COMPARISONS[name], right, exact, read)


def _compare(comparator: Comparator, left: Operand, right: Operand) -> Predicate:
    for operand in (left, right):
        if isinstance(operand, Opaque):
            return operand
        if not operand.type.supported and not (isinstance(operand, Literal) and operand.value is None):
            return Opaque(reasons.UNCOMPARED.of(type=operand.type))
    return Comparison(comparator, left, right)


def _compared_truth(condition: Predicate, truth: Any, null_safe: bool) -> Predicate:
    """``condition = truth`` or ``condition <=> truth``."""
    if truth is None:
        return null_of(condition) if null_safe else _NULL
    if not isinstance(truth, bool):
        raise UnreadableTree(f"malformed: {str(truth)[:100]!r} is not a truth value")
    wanted = condition if truth else Not(condition)
    return certain(wanted) if null_safe else wanted


def _null_test(tree: Tree, negated: bool, depth: int, conditionals: int) -> Predicate:
    child = child_of(tree)
    if _is_condition(child):
        null = null_of(_guarded(_predicate, child, depth + 1, conditionals))
        return Not(null) if negated else null
    operand = operand_of(child, 0)
    return operand if isinstance(operand, Opaque) else NullTest(operand, negated)


def _in(tree: Tree) -> Predicate:
    first, *rest = children_of(tree)
    operand = operand_of(first, 0)
    items = [operand_of(item, 0) for item in rest]
    if isinstance(operand, Opaque):
        return operand
    if all(isinstance(item, Literal) and (item.value is None or item.type == operand.type) for item in items):
        values = [item.value for item in items if isinstance(item, Literal)]
        return _is_in(operand, values)
    if len(items) > _MAX_DISJUNCTS:
        return Opaque(reasons.MANY_EXPRESSIONS.text)
    return Or(tuple(_compare("=", operand, item) for item in items))


def _in_set(tree: Tree) -> Predicate:
    operand = operand_of(child_of(tree), 0)
    if isinstance(operand, Opaque):
        return operand
    type_ = parse_type(text_of(tree.get("ht"), "type"))
    if type_ != operand.type or not type_.supported:
        return Opaque(reasons.UNCOMPARED.of(type=type_))
    if not isinstance(tree["hset"], list):
        raise UnreadableTree("malformed: the values of InSet")
    values = [value_from_data(item, type_) for item in tree["hset"] if item is not None]
    values.sort(key=lambda value: (value != value, value))  # a set comes in any order; NaN last
    return _is_in(operand, [*values, None] if None in tree["hset"] else values)


def _is_in(operand: Operand, values: Iterable[Value | None]) -> Predicate:
    if not operand.type.supported:
        return Opaque(reasons.UNCOMPARED.of(type=operand.type))
    found = dict.fromkeys(values)
    has_null = None in found
    return IsIn(operand, tuple(value for value in found if value is not None), has_null=has_null)


def _text_test(tree: Tree, test: TextTest) -> Predicate:
    operand, pattern = (operand_of(child, 0) for child in children_of(tree, 2))
    for side in (operand, pattern):
        if isinstance(side, Opaque):
            return side
        if side.type != _STRING:
            return Opaque(reasons.TEXT_TYPE.of(type=side.type))
    if not isinstance(pattern, Literal):
        return Opaque(reasons.PATTERN.text)
    if pattern.value is None:
        return _NULL
    escape = "\\"
    if test == "like":
        escape = text_of(scalars_of(tree).get("escapeChar"), "escape character")
    return Matches(test, operand, str(pattern.value), escape)


def _many_likes(tree: Tree, every: bool, negated: bool) -> Predicate:
    """LIKE ALL and LIKE ANY, if the request carries the patterns."""
    patterns = scalars_of(tree).get("patterns")
    operand = operand_of(child_of(tree), 0)
    if isinstance(operand, Opaque):
        return operand
    if not isinstance(patterns, list) or operand.type != _STRING:
        return Opaque(reasons.NOT_UNDERSTOOD.of(name=tree["c"]))
    parts: list[Predicate] = []
    for pattern in patterns:
        part = _NULL if pattern is None else Matches("like", operand, text_of(pattern, "pattern"))
        parts.append(Not(part) if negated else part)
    return And(tuple(parts)) if every else Or(tuple(parts))


# --- conditionals over truth values -------------------------------------------------------------------------------


def _case(tree: Tree, name: str, depth: int, conditionals: int) -> Predicate:
    """IF and CASE WHEN: the value of the first branch whose condition is true."""
    children = children_of(tree)
    if name == "If":
        children_of(tree, 3)
    if conditionals >= _MAX_CONDITIONALS or len(children) > 2 * _MAX_BRANCHES or len(children) < 2:
        return Opaque(reasons.MANY_BRANCHES.text)
    read = [_guarded(_predicate, child, depth + 1, conditionals + 1) for child in children]
    otherwise = read.pop() if len(read) % 2 else _NULL
    cases: list[Predicate] = []
    failed: list[Predicate] = []
    for condition, value in zip(read[::2], read[1::2], strict=True):
        true = certain(condition)
        cases.append(And((*failed, true, value)))
        failed.append(Not(true))
    return Or((*cases, And((*failed, otherwise))))


def _coalesce(tree: Tree, depth: int, conditionals: int) -> Predicate:
    """The value of the first child that is not null."""
    children = children_of(tree)
    if conditionals >= _MAX_CONDITIONALS or len(children) > _MAX_BRANCHES:
        return Opaque(reasons.MANY_BRANCHES.text)
    cases: list[Predicate] = []
    null: list[Predicate] = []
    for child in children:
        condition = _guarded(_predicate, child, depth + 1, conditionals + 1)
        is_null = null_of(condition)
        cases.append(And((*null, Not(is_null), condition)))
        null.append(is_null)
    return Or((*cases, And((*null, _NULL))))
