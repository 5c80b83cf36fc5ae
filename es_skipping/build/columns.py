"""Turns a user's column into the tree to recognise in filters, and back into Spark columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.elements import array_column, elements_in
from es_skipping.build.names import name_parts
from es_skipping.build.text_doubts import has_short_year
from es_skipping.errors import ColumnError, DatasetError
from es_skipping.lookup.built_with import TEXT_FORMATS, columns_of
from es_skipping.lookup.value_settings import setting
from es_skipping.predicates.codec import has_opaque, undeclared_functions
from es_skipping.predicates.functions import versioned_operand
from es_skipping.predicates.lambdas import read_elements
from es_skipping.predicates.read import read_operand
from es_skipping.predicates.show import quoted_name
from es_skipping.predicates.tree import Call, Cast, Column, Literal, Operand, parts_of
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.spark.failures import first_line
from es_skipping.spark.quiet import quiet
from es_skipping.spark.relations import expression_tree
from es_skipping.spark.services import declarations_of

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from es_skipping.build.source import Source

__all__ = ["ResolvedColumn", "resolve"]

# Functions whose value differs between queries, although Spark calls them deterministic.
_OF_THE_MOMENT: Final = frozenset(
    {
        "CurrentDate", "CurrentTimestamp", "CurrentTimestampLike", "LocalTimestamp", "Now", "CurrentTime",
        "CurrentTimeZone", "CurrentUser", "CurrentDatabase", "CurrentCatalog", "CurrentSchema", "SessionUser",
        "InputFileName", "InputFileBlockStart", "InputFileBlockLength", "UnixTimestampNow", "SparkVersion",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResolvedColumn:
    """An indexed column of a dataset.

    Parameters
    ----------
    text
        A name or a SQL expression that resolves to the column again.
    operand
        The column's tree.
    levels
        How many levels of arrays lie between the column and its values; 0 if it has one value for each row.
    """

    text: str
    operand: Operand
    levels: int = 0

    @property
    def type(self) -> DataType:
        return self.operand.type

    @property
    def sql(self) -> str:
        """The column as part of a SQL expression, where a name may need quotes."""
        if isinstance(self.operand, Column):
            return ".".join(map(quoted_name, self.operand.path))
        return f"({self.text})"


def resolve(source: Source, given: Any) -> ResolvedColumn:
    """Resolve one column.

    Parameters
    ----------
    source
        The dataset as Spark reads it.
    given
        A name as Spark writes it (``a.b``, `` `a.b` ``), a SQL expression, or a Spark ``Column``.

    Raises
    ------
    ColumnError
        The column is unknown, a partition column, or of a type that cannot be indexed; or it is an expression whose
        values depend on more than the objects.
    """
    from pyspark.errors import PySparkException

    plain = _plain(source, given)
    if plain is not None:
        return plain
    shown = given if isinstance(given, str) else str(given)
    elements = elements_in(given) if isinstance(given, str) else None
    if elements is not None and source.format in TEXT_FORMATS:
        raise ColumnError(
            f"column {shown!r} cannot be indexed: elements of {source.format} files cannot be indexed yet"
        )
    _, projection, analyzed = _analyzed(source.df, given, shown)
    try:
        tree = expression_tree(projection)
    except DatasetError as error:
        raise ColumnError(f"column {shown!r} cannot be indexed: {error}") from None
    except PySparkException as error:  # such as a constant that cannot be cast
        raise ColumnError(f"column {shown!r} cannot be indexed: {first_line(error).rstrip(';')}") from None
    _refuse_unrepeatable(analyzed, shown)
    levels = 0 if elements is None else elements.levels
    operand = read_elements(tree, levels) if levels else read_operand(tree)
    operand = versioned_operand(operand, declarations_of(source.df.sparkSession))
    undeclared = undeclared_functions(operand)
    if undeclared:
        raise ColumnError(
            f"column {shown!r} calls the user function {undeclared[0]!r}, which this session has not declared: declare "
            "it with a version by es_skipping.declare_function"
        )
    if any(map(_is_time_of_day, parts_of(operand))):
        raise ColumnError(
            f"column {shown!r} cannot be indexed: it reads text as a timestamp, and a time without a date takes the "
            "day of the query; give the text's format, as in to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')"
        )
    if has_short_year(_patterns_in(operand), source.settings):
        raise ColumnError(
            f"column {shown!r} cannot be indexed: its pattern has a two-digit year, whose century the legacy parser "
            "takes from the day of the query; use four digits, or unset spark.sql.legacy.timeParserPolicy"
        )
    partitions = [name for name in _attribute_names(analyzed) if name in source.partition_columns]
    if partitions:
        raise ColumnError(
            f"column {shown!r} uses the partition column {partitions[0]!r}, and Spark itself skips by partition "
            "values: index a column that the files store"
        )
    if has_opaque(operand) or isinstance(operand, Literal) or not columns_of([operand]):
        why = getattr(operand, "reason", "it reads no column")
        raise ColumnError(f"column {shown!r} cannot be indexed: {why}; use a column or an expression of columns")
    for part in columns_of([operand]):
        if part.path[0] == source.corrupt_record_column:
            raise ColumnError(
                f"column {shown!r} cannot be indexed: it holds corrupt records, which depend on the other columns that "
                "a query reads"
            )
    if not operand.type.supported:
        if operand.type.name.startswith("array<"):
            raise ColumnError(f"column {shown!r} has type {operand.type}; index its elements: {shown}[]")
        raise ColumnError(
            f"column {shown!r} has type {operand.type}; only numbers, strings without a collation, binaries, "
            "booleans, dates and timestamps can be indexed"
        )
    if source.format in TEXT_FORMATS and not isinstance(operand, Column) and not _null_in_null_out(analyzed):
        raise ColumnError(
            f"column {shown!r} cannot be indexed: in {source.format} files a value can be null in one query and not in "
            "another, and this expression is not null when its columns are; index the plain column"
        )
    text = given if isinstance(given, str) else _text_of(source.df, analyzed, tree, shown)
    return ResolvedColumn(text, operand, levels)


def _plain(source: Source, given: Any) -> ResolvedColumn | None:
    """Resolve the exact name of a file column with a plain type, without asking Spark."""
    if not isinstance(given, str) or not given.isidentifier() or given == source.corrupt_record_column:
        return None
    names = [*(field["name"] for field in source.schema["fields"]), *source.partition_columns]
    if [name for name in names if name.lower() == given.lower()] != [given] or given in source.partition_columns:
        return None
    field = next(field for field in source.schema["fields"] if field["name"] == given)
    type = field["type"]
    if not isinstance(type, str) or set(field.get("metadata") or {}) - {"comment"}:
        return None
    known = parse_type(type)
    return ResolvedColumn(given, Column((given,), known)) if known.supported else None


def column_for_index(df: DataFrame, text: str) -> SparkColumn:
    """The Spark column of a resolved text, for an index's code, which calls `pyspark.sql.functions`."""
    from pyspark.sql import functions

    from es_skipping.spark.classic import functions_are_remote

    column = _analyzed(df, text, text)[0]
    if not functions_are_remote():
        return column
    elements = elements_in(text)
    if elements is not None:
        return array_column(column_for_index(df, elements.base), elements.paths, functions)
    return functions.col(text) if _is_name(df, text) else functions.expr(text)


def _analyzed(df: DataFrame, given: Any, shown: str) -> tuple[SparkColumn, DataFrame, Any]:
    """The column, a frame of it alone, and its analysed expression. A text is a name if possible, else SQL."""
    from pyspark.errors import AnalysisException, ParseException, PySparkException
    from pyspark.sql import Column as AnyColumn

    from es_skipping.spark.classic import functions as F

    if not isinstance(given, str) and not (isinstance(given, AnyColumn) and hasattr(given, "_jc")):
        raise ColumnError(
            f"column {shown!r} is a {type(given).__module__}.{type(given).__name__}; pass a name or SQL as text"
        )
    with quiet():
        try:
            column: Any = given
            if isinstance(given, str):
                elements = elements_in(given)
                text = given if elements is None else elements.base
                column = F.col(text) if _is_name(df, text) else F.expr(text)
                if elements is not None:
                    column = array_column(column, elements.paths, F)
            projection = df.select(column)
            plan = projection._jdf.queryExecution().analyzed()
        except (AnalysisException, ParseException) as error:
            missing = str(error.getCondition()).startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND"))
            wrong = "does not exist" if missing else "is neither a column nor SQL that Spark understands"
            raise ColumnError(
                f"column {shown!r} {wrong}: {first_line(error).rstrip(';')}; the columns are {', '.join(df.columns)}"
            ) from None
        except PySparkException as error:
            raise ColumnError(f"column {shown!r} cannot be indexed: {first_line(error).rstrip(';')}") from None
    if plan.expressions().size() != 1:
        raise ColumnError(f"column {shown!r} is not one column")
    expression = plan.expressions().head()
    if expression.getClass().getSimpleName() == "Alias":
        expression = expression.child()
    return column, projection, expression


def _is_name(df: DataFrame, text: str) -> bool:
    """Whether a text names a column or a field of one, and is not a SQL expression."""
    from pyspark.sql.types import StructType

    parts = name_parts(text)
    if parts is None:
        return False
    key = "spark.sql.caseSensitive"
    sensitive = setting(key, {key: df.sparkSession.conf.get(key)}) == "true"
    type: Any = df.schema
    for part in parts:
        if not isinstance(type, StructType):
            return False
        wanted = part if sensitive else part.lower()
        found = next((f for f in type.fields if (f.name if sensitive else f.name.lower()) == wanted), None)
        if found is None:
            return False
        type = found.dataType
    return True


def _nodes(expression: Any) -> list[Any]:
    found = []
    pending = [expression]
    while pending:
        node = pending.pop()
        found.append(node)
        children = node.children()
        pending.extend(children.apply(at) for at in range(children.size()))
    return found


def _attribute_names(expression: Any) -> list[str]:
    return [node.name() for node in _nodes(expression) if node.getClass().getSimpleName() == "AttributeReference"]


def _refuse_unrepeatable(expression: Any, shown: str) -> None:
    if not expression.deterministic():
        raise ColumnError(f"column {shown!r} is not deterministic: a query would see other values than the index")
    for node in _nodes(expression):
        name = node.getClass().getSimpleName()
        if name in _OF_THE_MOMENT or name.startswith("Current"):
            raise ColumnError(
                f"column {shown!r} cannot be indexed: {name} depends on the time or the user of the query"
            )


def _is_time_of_day(part: Operand) -> bool:
    """Whether the expression turns text into a timestamp without a date: Spark then takes the day of the query."""
    if isinstance(part, Cast):
        source, target = part.child.type.name, part.type.name.replace("timestamp_ntz", "")
        return any(text in source for text in ("string", "char", "variant")) and "timestamp" in target
    return isinstance(part, Call) and part.name == "variantget" and "timestamp" in part.type.name


_PATTERN: Final = re.compile(r"(?:[GyYMLwWDdFEuaHkKhmsSzZX\W\d_]|'[^']*')*")


def _patterns_in(operand: Operand) -> Iterator[str]:
    """The texts in an expression that may be date and time patterns; a pattern that is not a constant may be any."""
    for part in parts_of(operand):
        if isinstance(part, Literal) and isinstance(part.value, str) and _PATTERN.fullmatch(part.value):
            yield part.value
        if isinstance(part, Call) and ("date" in part.name or "timestamp" in part.name):
            patterns = (one for one in part.arguments[1:] if one.type.name == "string")
            yield from ("yy" for one in patterns if not isinstance(one, Literal))


def _null_in_null_out(expression: Any) -> bool:
    """Whether every part of an expression is null if one of its arguments is."""
    for node in _nodes(expression):
        name = node.getClass().getSimpleName()
        if name in ("AttributeReference", "Literal", "Cast", "GetStructField"):
            continue
        try:
            if not node.nullIntolerant():
                return False
        except Exception:  # a class without the method: unknown
            return False
    return True


def _text_of(df: DataFrame, analyzed: Any, tree: dict[str, Any], shown: str) -> str:
    """SQL text for a `Column`; verified, because not every expression has SQL text."""
    text = str(analyzed.sql())
    try:
        if expression_tree(_analyzed(df, text, text)[1]) == tree:
            return text
    except (ColumnError, DatasetError):
        pass
    raise ColumnError(f"the Column {shown!r} has no SQL form that the store can keep; pass it as SQL text")
