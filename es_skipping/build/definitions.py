"""The definitions of a dataset's indexes, as a build stores them, and whether stored metadata still fits them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from es_skipping.build.columns import ResolvedColumn, resolve
from es_skipping.build.elements import check_elements, of_each_element
from es_skipping.build.index_arguments import lasting
from es_skipping.build.wanted import Wanted
from es_skipping.catalog import DatasetDefinition, IndexDefinition, Protection
from es_skipping.errors import ColumnError, IndexDefinitionError
from es_skipping.indexes.base import Index
from es_skipping.indexes.induced import Induced
from es_skipping.indexes.registry import from_definition, index_id, readable_id
from es_skipping.indexes.remembered import Remembered
from es_skipping.indexes.toolkit.column import only
from es_skipping.lookup.built_with import dataset_facts, index_facts, is_secret
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.types import DataType
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import check_protection, key_of, new_protection

if TYPE_CHECKING:
    from es_skipping.build.arrow.source import FilesSource
    from es_skipping.build.source import Source

__all__ = ["Defined", "defined", "defined_dataset", "is_protected_so", "same_index"]

_Resolving: TypeAlias = Callable[[Any, Any], ResolvedColumn]


@dataclass(frozen=True, slots=True)
class Defined:
    """A dataset's definition as a build of its source leaves it.

    Parameters
    ----------
    definition
        With the stored indexes and the added ones.
    wanted
        All of these indexes, for collecting.
    new
        The ids of the added ones, and of those that objects lack in their current form: a dimension has changed.
    fresh
        Whether all stored metadata is built again, or there is none.
    """

    definition: DatasetDefinition
    wanted: tuple[Wanted, ...]
    new: frozenset[str]
    fresh: bool


def defined_dataset(
    source: Source | FilesSource,
    id: str,
    stored: DatasetDefinition | None,
    add: Sequence[Index],
    *,
    ensure: bool,
    resolving: _Resolving = resolve,
) -> Defined:
    """Define the stored indexes again, and these. Remembered conditions on columns that are gone are left out.

    Parameters
    ----------
    resolving
        Resolves a column of the source.

    Raises
    ------
    ColumnError
        A column is unknown or cannot carry the index.
    IndexDefinitionError
        An added index is there already, and ``ensure`` does not allow that.
    """
    kept: list[tuple[IndexDefinition, Wanted]] = []
    outdated: set[str] = set()
    for before in stored.indexes if stored else ():
        index = _as_now(source, from_definition(before))
        try:
            now = defined(source, index, again=True, resolving=resolving, protection=before.protection)
        except ColumnError:
            if not _may_go(source, index):
                raise
            continue
        kept.append(now)
        if now[0].parameters != before.parameters:
            outdated.add(now[0].id)
    added: list[tuple[IndexDefinition, Wanted]] = []
    for index in add:
        asked = defined(source, index, resolving=resolving)
        twice = next((one for one, _ in (*kept, *added) if same_index(one, asked[0])), None)
        if twice is None:
            added.append(asked)
        elif not ensure:
            raise IndexDefinitionError(
                f"index {readable_id(twice.id)} exists already: call ensure_indexes to accept that, refresh to "
                "update it, or drop it first to rebuild it"
            )
        elif not is_protected_so(twice, index):
            raise IndexDefinitionError(
                f"index {readable_id(twice.id)} exists already with another protection: drop it first to change that"
            )
    both = [*kept, *added]
    definition = DatasetDefinition(
        id=id,
        roots=source.roots,
        format=source.format,
        indexes=tuple(one for one, _ in both),
        table=source.table,
        options={name: value for name, value in source.options.items() if not is_secret(name)},
        schema=json.dumps(source.schema, ensure_ascii=False, separators=(",", ":")),
        built_with=dataset_facts(source.format, source.options, source.schema),
    )
    return Defined(
        definition,
        tuple(wanted for _, wanted in both),
        frozenset(one.id for one, _ in added) | outdated,
        stored is None or _is_rebuilt(stored, definition),
    )


def _may_go(source: Source | FilesSource, index: Index) -> bool:
    """Whether an index whose column is gone is left out: nobody named it, so nobody is asked to drop it.

    Without Spark no condition can be read, whether its columns are there or not.
    """
    from es_skipping.build.source import Source

    return isinstance(index, Remembered) and isinstance(source, Source)


def _as_now(source: Source | FilesSource, index: Index) -> Index:
    """A stored index, for the dimensions as they are now."""
    from es_skipping.build.dimensions import current_snapshot
    from es_skipping.build.source import Source

    if isinstance(index, Induced) and isinstance(source, Source):
        now = current_snapshot(source, index)
        return index if now is None else index.at(now)
    return index


def _resolved(source: Source | FilesSource, index: Induced) -> Induced:
    from es_skipping.build.dimensions import resolved
    from es_skipping.build.source import Source

    if index.protect not in (None, "plain"):
        raise IndexDefinitionError(
            f"{index} cannot be {index.protect}: its definition holds values of the dimension in clear; pass "
            "protect='plain' if they may be seen"
        )
    if index.resolved:
        return index
    if not isinstance(source, Source):
        raise ColumnError(f"{index} joins a dimension, which only Spark can do")
    return resolved(source, index)


def defined(
    source: Source | FilesSource,
    index: Index,
    *,
    again: bool = False,
    resolving: _Resolving = resolve,
    protection: Protection | None = None,
) -> tuple[IndexDefinition, Wanted]:
    """An index in its stored form and in its form for collecting.

    Parameters
    ----------
    again
        Whether the dataset has the index already.
    resolving
        Resolves a column of the source.
    protection
        That of an index that the dataset has already.

    Raises
    ------
    ColumnError
        A column is unknown or cannot carry the index.
    ProtectionError
        The index's key cannot be had, or is not the one that the index was made with.
    """
    mode = index.protect or "plain"
    check_protection(mode, index.key)
    if isinstance(index, Induced):
        index = _resolved(source, index)
    try:
        given = tuple(resolving(source, one) for one in index.columns)
        columns = _summarised(source, index, given, resolving)
        types = tuple(column.type for column in columns)
        index.check(types)
        if any(column.levels for column in columns):
            check_elements(index)
    except ColumnError as error:
        if again:
            raise ColumnError(f"{error} (an index uses this column: drop the index, or restore the column)") from None
        raise
    texts = tuple(column.text for column in given)
    operands = tuple(column.operand for column in columns)
    id = index_id(index, texts)
    definition = IndexDefinition(
        id=id,
        type=index.type,
        columns=texts,
        kind=index.kind,
        value_type=index.value_type(types),
        operands=tuple(operand_to_data(operand) for operand in operands),
        column_types=types,
        parameters=dict(index.parameters),
        built_with=index_facts(source.format, operands, source.schema, source.settings),
        needs=("elements",) if any(column.levels for column in columns) else (),
    )
    if mode != "plain" and index.key is not None:
        if protection is not None:
            key_of(protection)
        definition = protected(definition, protection or new_protection(mode, index.key))
    return definition, Wanted(id, index, columns)


def _summarised(
    source: Source | FilesSource, index: Index, given: tuple[ResolvedColumn, ...], resolving: _Resolving
) -> tuple[ResolvedColumn, ...]:
    """The expression that an index computes of its columns, if it is not just the columns."""
    columns = [column.sql for column in given]
    expressions = list(index.summarised(columns))
    if expressions == columns:
        return given
    if len(given) == 1 and given[0].levels:
        expressions = [of_each_element(given[0].text, lambda element: only(index.summarised([element])))]
    return tuple(resolving(source, expression) for expression in expressions)


def same_index(first: IndexDefinition, second: IndexDefinition) -> bool:
    """Whether two definitions describe the same index, even if its columns are written differently."""
    return first.id == second.id or (
        first.type == second.type
        and list(first.operands) == list(second.operands)
        and dict(first.parameters) == dict(second.parameters)
    )


def is_protected_so(definition: IndexDefinition, index: Index) -> bool:
    """Whether a stored index has the protection that a user's index asks for."""
    has = definition.protection
    return (index.protect or "plain", index.key) == (("plain", None) if has is None else (has.mode, has.key))


def _is_rebuilt(stored: DatasetDefinition, now: DatasetDefinition) -> bool:
    """Whether the stored metadata was built from other values than a build now sees."""
    if dict(stored.built_with) != dict(now.built_with) or stored.format != now.format:
        return True
    indexes = {index.id: index for index in now.indexes}
    return any(_facts(index) != _facts(indexes[index.id]) for index in stored.indexes if index.id in indexes)


def only_schema_differs(stored: DatasetDefinition, now: DatasetDefinition) -> bool:
    """Whether a build sees columns of the same names with other types at most, by the same options and settings.

    Only indexes of columns qualify: what an expression computes can change for other reasons too.
    """
    indexes = {index.id: index for index in stored.indexes}
    return (stored.format, _without_schema(stored.built_with)) == (now.format, _without_schema(now.built_with)) and all(
        _without_types(indexes[index.id]) == _without_types(index) for index in now.indexes if index.id in indexes
    )


def _without_schema(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: "" if name == "schema" or name.startswith("column ") else fact for name, fact in facts.items()}


def _without_types(index: IndexDefinition) -> tuple[Any, ...]:
    plain, operands, built_with, parameters = _facts(index)
    columns = [{"column": operand["column"]} if "column" in operand else operand for operand in operands]
    return replace(plain, column_types=(), value_type=DataType("int")), columns, _without_schema(built_with), parameters


def _facts(index: IndexDefinition) -> tuple[Any, ...]:
    plain = replace(index, operands=(), built_with={}, parameters={})
    parameters = lasting(from_definition(index), index.parameters)
    return plain, list(index.operands), dict(index.built_with), parameters
