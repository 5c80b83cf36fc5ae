"""From a filter's SQL text to trees that a look-up reads.

sqlglot parses the text in Spark's dialect. A part that is not surely understood becomes an opaque tree, which rules
nothing out; NOT is brought down to the parts first, because an opaque part stays opaque under it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlglot
import sqlglot.errors
from sqlglot import expressions as exp

from es_skipping.engines.columns import Columns
from es_skipping.engines.leaves import (
    Tree,
    among,
    both,
    column_tree,
    compared,
    constant,
    either,
    not_null,
    opaque,
    text_test,
)
from es_skipping.engines.literals import Refused, check_together
from es_skipping.errors import FilterError
from es_skipping.predicates.tree import FLIPPED, Comparator

__all__ = ["Condition", "condition_of", "parsed"]

_COMPARATORS: Final[Mapping[type[Any], Comparator]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<>",
}
_READ: Final[Mapping[type[Any], tuple[str, ...]]] = {
    **dict.fromkeys((*_COMPARATORS, exp.And, exp.Or, exp.Is, exp.StartsWith, exp.Dot), ("this", "expression")),
    **dict.fromkeys((exp.Not, exp.Paren, exp.Neg, exp.Boolean, exp.Null), ("this",)),
    exp.Between: ("this", "low", "high"),
    exp.Cast: ("this", "to"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.DataType: ("this",),
    exp.Identifier: ("this", "quoted"),
    exp.In: ("this", "expressions"),
    exp.Like: ("this", "expression", "negate"),
    exp.Literal: ("this", "is_string"),
}
"""The classes of nodes that are understood, and what of each is read. A node of another class, or with more in it, such
as a negation in a form that another version of sqlglot has, is refused."""
_MAX_VALUES: Final = 1000
"""Values of one IN."""
_MAX_TEXT: Final = 1 << 20
"""Characters of a filter."""
_QUOTED: Final = re.compile(r"'[^']*'|`[^`]*`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter as a conjunction of trees.

    Parameters
    ----------
    trees
        One entry of a request's ``filters``.
    refused
        ``(text, reason)`` of the parts that rule nothing out.
    """

    trees: tuple[Tree, ...]
    refused: tuple[tuple[str, str], ...]


def parsed(where: str) -> exp.Expression | str:
    """Parse a filter. If engines take the text itself apart in different ways, why it is refused.

    Raises
    ------
    FilterError
        The text is not one condition.
    """
    if not isinstance(where, str) or not where.strip():
        raise FilterError(f"the filter is {where!r}; pass a condition such as \"ts >= '2026-11-20' AND city = 'Oslo'\"")
    unquoted = _QUOTED.sub("", where)
    if "--" in unquoted or "/*" in unquoted:  # first of all: quotes in a comment enclose nothing
        return "a comment"
    if '"' in unquoted:
        raise FilterError(
            "the filter has a double quote, which encloses text in Spark and a name in DuckDB: write text in '...' and "
            "names in `...`"
        )
    if len(where) > _MAX_TEXT:
        return "too long"
    try:
        found = sqlglot.Dialect.get_or_raise("spark").parse_into(exp.Condition, where)
    except RecursionError:
        return "nested too deeply"
    except (sqlglot.errors.SqlglotError, ValueError) as error:
        text = re.sub(r"\x1b\[\d*m", "", str(error)).strip()
        raise FilterError(f"the filter {where[:200]!r} cannot be parsed: {text.splitlines()[0]}") from error
    if len(found) != 1 or not isinstance(found[0], exp.Expression):
        raise FilterError(f"the filter {where[:200]!r} is not one condition")
    if isinstance(found[0], (exp.Query, exp.Command, exp.Alias)):
        raise FilterError(f"the filter {where[:200]!r} is a statement; pass only the condition after WHERE")
    return "a backslash is a character in some engines and an escape in others" if "\\" in where else found[0]


def condition_of(where: str, columns: Columns) -> Condition:
    """Read a filter.

    Raises
    ------
    FilterError
        The text is not one condition.
    ColumnError
        It names a column that the dataset does not have.
    """
    expression = parsed(where)
    if isinstance(expression, str):
        return _refused(where, expression)
    reader = _Reader(columns)
    try:
        for column in _columns_in(expression):
            columns.check(column)
            if columns.is_unclear(column[0]):
                return _refused(where, f"the values of partition column {column[0]} are not all of one kind")
        trees = tuple(reader.tree(part, False) for part in _flat(expression, exp.And))
    except RecursionError:
        return _refused(where, "nested too deeply")
    return Condition(trees, tuple(dict.fromkeys(reader.refused)))


def _refused(where: str, reason: str) -> Condition:
    return Condition((opaque(reason),), ((where[:200], reason),))


def _columns_in(expression: exp.Expression) -> Iterator[tuple[str, ...]]:
    for column in expression.find_all(exp.Column):
        if column.find_ancestor(exp.Query, exp.Lambda) is None and not isinstance(column.this, exp.Star):
            yield _path(column)


def _path(column: exp.Expression) -> tuple[str, ...]:
    """The names of a column from the top; sqlglot takes fields of a struct for fields of a table."""
    if isinstance(column, exp.Dot):
        return (*_path(column.this), column.expression.name)
    assert isinstance(column, exp.Column)
    return tuple(part.name for part in column.parts)


def _flat(expression: exp.Expression, connective: type[exp.Expression]) -> Iterator[exp.Expression]:
    """The operands of a chain of ANDs or ORs."""
    pending = [expression]
    while pending:
        part = pending.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if isinstance(part, connective):
            pending += [part.args["expression"], part.this]
        else:
            yield part


class _Reader:
    """Makes trees, and notes what is refused."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.refused: list[tuple[str, str]] = []

    def tree(self, node: exp.Expression, negated: bool) -> Tree:
        """The tree of a node, or of its negation."""
        while isinstance(node, (exp.Paren, exp.Not)):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        for connective, join in ((exp.And, both), (exp.Or, either)):
            if isinstance(node, connective):
                if negated:
                    join = either if join is both else both
                return join([self.tree(part, negated) for part in _flat(node, connective)])
        try:
            return self._leaf(node, negated)
        except Refused as refusal:
            text = node.sql(dialect="spark")
            self.refused.append((f"NOT {text}" if negated else text, str(refusal)))
            return opaque(str(refusal))

    def _leaf(self, node: exp.Expression, negated: bool) -> Tree:
        for part in node.walk():
            known = _READ.get(type(part))
            if known is None or any(part.args[name] for name in part.args.keys() - set(known)):
                raise Refused(f"{part.key.upper()} is not understood")
        if isinstance(node, (exp.Boolean, exp.Null)):
            value = None if isinstance(node, exp.Null) else bool(node.this)
            return constant(value if value is None else value != negated)
        if isinstance(node, (exp.Column, exp.Dot)):
            return self._compare("=", node, exp.true(), negated)
        if type(node) in _COMPARATORS:
            return self._comparison(_COMPARATORS[type(node)], node, negated)
        if isinstance(node, exp.Between):
            ends = [literal for end in ("low", "high") if (literal := _literal(node.args[end])) is not None]
            check_together(text for kind, text, _ in ends if kind == "number")
            low = self._compare(">=", node.this, node.args["low"], negated)
            high = self._compare("<=", node.this, node.args["high"], negated)
            return either([low, high]) if negated else both([low, high])
        if isinstance(node, exp.In):
            return self._in(node, negated)
        if isinstance(node, exp.Is):
            return self._is(node, negated)
        if isinstance(node, (exp.Like, exp.StartsWith)):
            return self._text(node, negated)
        raise Refused(f"{node.key.upper()} is not a comparison of a column with a constant")

    def _comparison(self, comparator: Comparator, node: exp.Expression, negated: bool) -> Tree:
        left, right = node.this, node.args["expression"]
        if not isinstance(_bare(left), (exp.Column, exp.Dot)):
            left, right, comparator = right, left, FLIPPED[comparator]
        if isinstance(node, exp.NullSafeNEQ):
            comparator, negated = "<=>", not negated
        if comparator == "<=>":
            if negated or isinstance(_bare(right), exp.Null):
                raise Refused("it holds for nulls, and also where a file spells the column in another case")
            comparator = "="
        return self._compare(comparator, left, right, negated)

    def _compare(self, comparator: Comparator, left: exp.Expression, right: exp.Expression, negated: bool) -> Tree:
        column = _bare(left)
        if not isinstance(column, (exp.Column, exp.Dot)):
            raise Refused("not a comparison of a column with a constant")
        literal = _literal(right)
        if literal is None:
            return constant(None)
        found = self._columns.find(_path(column))
        if found.type.name == "boolean" and comparator not in ("=", "<>"):
            raise Refused("the order of truth values")
        return compared(comparator, column_tree(found.path, found.type), found.type, literal, negated)

    def _in(self, node: exp.In, negated: bool) -> Tree:
        values = node.args.get("expressions") or []
        if negated:
            raise Refused("pyarrow's NOT IN holds for nulls, and for zeros of another sign")
        if not values:
            raise Refused("IN without a list of constants")
        if len(values) > _MAX_VALUES:
            raise Refused(f"more than {_MAX_VALUES} values")
        if any(isinstance(_bare(value), exp.Null) for value in values):
            raise Refused("pyarrow's IN with a null among the values holds for nulls")
        column, literals = _bare(node.this), [literal for literal in map(_literal, values) if literal is not None]
        if not isinstance(column, (exp.Column, exp.Dot)):
            raise Refused("not a test of a column")
        found = self._columns.find(_path(column))
        return among(column_tree(found.path, found.type), found.type, literals)

    def _is(self, node: exp.Is, negated: bool) -> Tree:
        column, what = _bare(node.this), _bare(node.args["expression"])
        if not isinstance(what, exp.Null) or not isinstance(column, (exp.Column, exp.Dot)):
            raise Refused("only IS NOT NULL of a column is understood")
        if not negated:
            raise Refused("it holds for nulls, and also where a file spells the column in another case")
        found = self._columns.find(_path(column))
        return not_null(column_tree(found.path, found.type))

    def _text(self, node: exp.Expression, negated: bool) -> Tree:
        column, pattern = _bare(node.this), node.args["expression"]
        if not isinstance(column, (exp.Column, exp.Dot)):
            raise Refused("not a test of a column")
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise Refused("the pattern is not a constant")
        found = self._columns.find(_path(column))
        if found.type.name != "string":
            raise Refused(f"a pattern beside {found.type}")
        name = "Like" if isinstance(node, exp.Like) else "StartsWith"
        negated ^= bool(node.args.get("negate"))
        return text_test(name, column_tree(found.path, found.type), pattern.name, negated)


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


_CAST: Final[Mapping[Any, str]] = {
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}


def _literal(node: exp.Expression) -> tuple[str, str, bool] | None:
    """A constant as ``(what it is, text, with a minus)``; None for NULL."""
    node = _bare(node)
    negative = False
    while isinstance(node, exp.Neg):
        negative = not negative
        node = _bare(node.this)
    if isinstance(node, exp.Literal):
        if negative and node.is_string:
            raise Refused("a minus before text")
        return ("text" if node.is_string else "number", str(node.this), negative)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean) and not negative:
        return ("boolean", "true" if node.this else "false", False)
    if isinstance(node, exp.Cast) and not negative and isinstance(node.this, exp.Literal) and node.this.is_string:
        kind = _CAST.get(node.to.this)
        if kind is not None:
            return (kind, str(node.this.this), False)
    raise Refused("not a comparison of a column with a constant")
