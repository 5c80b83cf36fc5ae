"""The suffix ``[]`` of a column's name, which means the elements of an array: its syntax, and its Spark columns.

``tags[]`` are the elements of the array ``tags``, ``readings[].value`` a field of the elements of an array of structs,
and ``grid[][]`` the elements of the arrays in an array. Before the first ``[]`` stands any name or SQL expression, such
as ``map_keys(m)``. Spark's SQL has no ``[]``, so only a name can hold these two characters; backticks quote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.errors import ColumnError
from es_skipping.indexes.base import Index
from es_skipping.indexes.toolkit.column import ColumnIndex, only
from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

__all__ = ["ElementsOf", "array_column", "check_elements", "collected_elements", "elements_in", "of_each_element"]

_QUOTED_OR_SUFFIX: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`|(\[\])", re.DOTALL)
_FIELD: Final = re.compile(r"\.(?:`((?:[^`]|``)+)`|(\w+))")


_ELEMENT: Final = "the element"
"""The name of an element in SQL that is made here: hardly one of a column that an expression reads beside it."""


@dataclass(frozen=True, slots=True)
class ElementsOf:
    """A column with ``[]`` in parts.

    Parameters
    ----------
    base
        Name or SQL expression of the array.
    paths
        For each ``[]`` the names of the fields behind it.
    """

    base: str
    paths: tuple[tuple[str, ...], ...]

    @property
    def levels(self) -> int:
        return len(self.paths)


def elements_in(text: str) -> ElementsOf | None:
    """Take a column with ``[]`` apart; None if the text has no ``[]`` outside quotes.

    Raises
    ------
    ColumnError
        Something else than names of fields stands behind ``[]``.

    Examples
    --------
    >>> elements_in("readings[].value"), elements_in("`x[]`")
    (ElementsOf(base='readings', paths=(('value',),)), None)
    """
    ends = [found.span(1) for found in _QUOTED_OR_SUFFIX.finditer(text) if found[1]]
    if not ends:
        return None
    starts = [*(start for start, _ in ends[1:]), len(text)]
    paths = [_path(text[end:start], text) for (_, end), start in zip(ends, starts, strict=True)]
    base = text[: ends[0][0]].strip()
    if not base:
        raise ColumnError(f"column {text!r} names no array before []; write for example tags[]")
    return ElementsOf(base, tuple(paths))


def _path(text: str, whole: str) -> tuple[str, ...]:
    text = text.strip()
    if _FIELD.sub("", text):
        raise ColumnError(
            f"column {whole!r}: only names of fields may follow [], as in readings[].value; quote a column whose name "
            "holds [] with backticks"
        )
    return tuple(quoted.replace("``", "`") if quoted else plain for quoted, plain in _FIELD.findall(text))


def of_each_element(text: str, expression: Callable[[str], str]) -> str:
    """A column of elements as SQL of an array, with an expression of each of them.

    Parameters
    ----------
    text
        The column, with ``[]``.
    expression
        Makes SQL from the SQL of an element.

    Raises
    ------
    ColumnError
        These are the elements of arrays in an array.

    Examples
    --------
    >>> of_each_element("stops[].place", "upper({})".format)
    'transform(stops, `the element` -> upper(`the element`.`place`))[]'
    """
    elements = elements_in(text)
    assert elements is not None
    if elements.levels > 1:
        raise ColumnError(f"column {text!r}: an expression of elements takes one []")
    element = ".".join(map(quoted_name, (_ELEMENT, *only(elements.paths))))
    return f"transform({elements.base}, {quoted_name(_ELEMENT)} -> {expression(element)})[]"


def array_column(array: SparkColumn, paths: Sequence[Sequence[str]], functions: Any) -> SparkColumn:
    """The Spark column of the indexed elements: an array, of arrays where ``[]`` occurs twice.

    Parameters
    ----------
    array
        The outermost array.
    paths
        As in `ElementsOf`.
    functions
        The module ``pyspark.sql.functions`` that made the array.
    """
    first, *rest = paths
    if not any(paths):
        return array
    if not rest:
        return _with_fields(array, first)
    inner: SparkColumn = functions.transform(array, lambda one: array_column(_with_fields(one, first), rest, functions))
    return inner


def _with_fields(column: SparkColumn, path: Sequence[str]) -> SparkColumn:
    for name in path:
        column = column.getField(name)
    return column


def collected_elements(index: Index, columns: Sequence[SparkColumn], levels: int) -> list[SparkColumn]:
    """The columns that an index collects of elements: what it collects of a value, for each element."""
    from pyspark.sql import functions as F

    if type(index).collected is Index.collected:
        return list(columns)

    def each(array: SparkColumn, levels: int) -> SparkColumn:
        if not levels:
            return only(index.collected([array]))
        return F.transform(array, lambda element: each(element, levels - 1))

    return [each(only(columns), levels)]


def check_elements(index: Index) -> None:
    """Refuse elements for an index type that cannot collect them.

    Raises
    ------
    ColumnError
        The index type has more than one column, or another form of metadata.
    """
    if not isinstance(index, ColumnIndex):
        raise ColumnError(f"{index} indexes rows; MinMax, ValueList, BloomFilter and the like index elements")
