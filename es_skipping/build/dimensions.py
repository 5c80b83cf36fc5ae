"""The dimensions of a fact, for indexes of type `Induced`: resolved, listed, and reduced to bits for each key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.columns import column_for_index, resolve
from es_skipping.build.conditions import condition_of
from es_skipping.build.listing import Listing, settled
from es_skipping.build.source import Reading, Source, moved
from es_skipping.errors import ColumnError, EsSkippingError, IndexDefinitionError
from es_skipping.indexes.features import feature_words
from es_skipping.indexes.induced import BOUND_TYPES, KEY_TYPES, Induced
from es_skipping.indexes.registry import readable_id
from es_skipping.indexes.toolkit.summaries import plain, python_bound
from es_skipping.lookup.built_with import dataset_facts, index_facts
from es_skipping.lookup.given_protection import GivenProtection
from es_skipping.lookup.induced import listing_digest, snapshot_digest
from es_skipping.predicates.codec import operand_to_data, value_to_data
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import sql_name
from es_skipping.predicates.tree import And, Column, Comparator, Comparison, Literal, NullTest, Operand, Predicate
from es_skipping.spark.failures import error_text, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from es_skipping.build.columns import ResolvedColumn
    from es_skipping.predicates.types import Value
    from es_skipping.stores.base import MetadataStore

__all__ = ["DimensionBits", "bits_of", "current_snapshot", "refuse_protected", "resolved", "with_bits"]

_FORMATS: Final = frozenset({"parquet", "orc"})
"""Formats in which a column's values do not depend on the other columns that are read."""
_SAMPLED_ROWS: Final = 200_000
_BROADCAST_ROWS: Final = 5_000_000
"""Keys that the driver and each executor hold; with more, the fact's keys are shuffled."""
KEY: Final = "__es_skipping_dimension_key"


@dataclass(frozen=True, slots=True)
class DimensionBits:
    """The bits of each key that a fact refers to.

    Parameters
    ----------
    frame
        A row per key: the key in the column `KEY`, then words as `feature_words` makes them.
    words
        The names of the words' columns.
    snapshot
        The digest of the listings of the dimensions.
    is_small
        Whether the frame can be broadcast.
    """

    frame: DataFrame
    words: tuple[str, ...]
    snapshot: str
    is_small: bool


def resolved(source: Source, index: Induced) -> Induced:
    """An index that a user passed, with its columns, conditions and bounds resolved.

    Raises
    ------
    ColumnError, DatasetError, IndexDefinitionError
        A dimension, a column or a condition cannot be used.
    """
    chain = [_opened(source, key.table) for key in index.keys]
    conditions = [resolve(chain[-1].source, text) for text in index.conditions]
    bounds = [_bound(chain[-1].source, text) for text in index.bounds]
    for one in (*conditions, *bounds):
        if one.levels:
            raise ColumnError(f"{one.text!r} is about elements of arrays, which {index.type} does not support")
    for one in conditions:
        if one.type.name != "boolean":
            raise ColumnError(f"{one.text!r} has type {one.type}; {index.type} needs a condition")
    hops: list[dict[str, Any]] = []
    owner = source
    for key, listing in zip(index.keys, chain, strict=True):
        column, match = _key(owner, key.name), _key(listing.source, key.key)
        if column.type != match.type:
            raise ColumnError(
                f"{key.column} has type {column.type} and {key.references} has type {match.type}; a foreign key must "
                "have the type of the key that it refers to"
            )
        used: list[Operand] = [match]
        if listing is chain[-1]:
            used += [one.operand for one in (*conditions, *bounds)]
        else:
            used.append(_key(listing.source, index.keys[len(hops) + 1].name))
        hops.append(
            {
                "column": column.path[0],
                "key": match.path[0],
                "built_with": dataset_facts(listing.source.format, listing.source.options, listing.source.schema),
                "facts": _facts(listing.source, used),
            }
        )
        owner = listing.source
    data = {
        "hops": hops,
        "conditions": [operand_to_data(one.operand) for one in conditions],
        "bounds": [
            {
                "operand": operand_to_data(one.operand),
                "cuts": [value_to_data(cut, one.type) for cut in _cuts(chain[-1].source, one, index.ranges)],
            }
            for one in bounds
        ],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    made = Induced(
        *index.keys, conditions=index.conditions, bounds=index.bounds, ranges=index.ranges, resolved=text
    ).protected(index.protect, index.key)
    return made.at(_snapshot(chain) or "")


def refuse_protected(source: Source, index: Induced, store: MetadataStore) -> None:
    """Refuse an index whose definition would show what a protected index of its dimension hides.

    Parameters
    ----------
    index
        Resolved.

    Raises
    ------
    IndexDefinitionError
    """
    roots = _opened(source, index.keys[-1].table).source.roots
    for entry in store.datasets():
        hidden = GivenProtection(entry.definition).of(index.operands)
        if hidden and any(_overlap(one, other) for one in roots for other in entry.definition.roots):
            raise IndexDefinitionError(
                f"{index}: the dimension's index {readable_id(hidden[0].id)} is {hidden[0].mode}, and this definition "
                "would hold values of its column in clear; leave the column out, or pass protect='plain' if they may "
                "be seen"
            )


def _overlap(one: str, other: str) -> bool:
    one, other = (f"{root.rstrip('/')}/" for root in (one, other))
    return one.startswith(other) or other.startswith(one)


def current_snapshot(source: Source, index: Induced) -> str | None:
    """The digest of what the dimensions of an index list now; None if they cannot be listed."""
    try:
        return _snapshot([_opened(source, key.table) for key in index.keys])
    except EsSkippingError:
        return None


def bits_of(source: Source, index: Induced) -> DimensionBits | str:
    """The bits of each key that the fact refers to; otherwise why they are unknown now.

    A build of the fact does not fail because of a dimension: its objects stay unknown to the index.
    """
    try:
        chain = [_opened(source, key.table) for key in index.keys]
        snapshot = _snapshot(chain)
        if snapshot is None:
            return "a file of the dimension was modified just before it was listed"
        if not _reads_alike(index, chain):
            return "the dimension is read otherwise than when the index was created: drop it and create it again"
        return _computed(source, index, chain, snapshot)
    except EsSkippingError as error:
        return f"the dimension cannot be read: {error}"
    except Exception as error:
        return f"the dimension cannot be read: {reason(error_text(error))}"


def _reads_alike(index: Induced, chain: Sequence[Listing]) -> bool:
    """Whether each dimension has the schema, options and settings with which the index was resolved."""
    for at, (hop, listing) in enumerate(zip(index.hops, chain, strict=True)):
        source = listing.source
        used: list[Operand] = [_key(source, hop.key)]
        used += index.operands if at + 1 == len(chain) else [_key(source, index.hops[at + 1].column)]
        facts = dataset_facts(source.format, source.options, source.schema), _facts(source, used)
        if facts != (dict(hop.built_with), dict(hop.facts)):
            return False
    return True


def _computed(source: Source, index: Induced, chain: Sequence[Listing], snapshot: str) -> DimensionBits | str:
    from es_skipping.spark.classic import functions as F

    last = chain[-1].source
    frame = moved(last.df, source.df.sparkSession)
    conditions = [column_for_index(frame, text) for text in index.conditions]
    for predicate in _range_predicates(index):
        text = condition_of(last, predicate)
        if isinstance(text, str):
            return text
        conditions.append(F.expr(text.text))
    words = [word.alias(f"w{at}") for at, word in enumerate(feature_words(conditions))]
    names = tuple(f"w{at}" for at in range(len(words)))
    bits = _by_key(frame.select(_named(frame, index.hops[-1].key).alias(KEY), *words), names)
    for at in range(len(chain) - 1, 0, -1):
        before = moved(chain[at - 1].source.df, source.df.sparkSession)
        reached = before.select(
            _named(before, index.hops[at - 1].key).alias("__key"), _named(before, index.hops[at].column).alias(KEY)
        ).join(bits, KEY)
        bits = _by_key(reached.select(F.col("__key").alias(KEY), *names), names)
    bits = bits.localCheckpoint(eager=True)
    if not all(listing.source.are_unchanged(listing.objects) for listing in chain):
        return "a dimension changed while it was read"
    return DimensionBits(bits, names, snapshot, bits.count() <= _BROADCAST_ROWS)


def with_bits(rows: DataFrame, bits: DimensionBits, key: str, width: int) -> DataFrame:
    """Rows of a fact with the words of their key, as columns from position ``width`` on, in place of the key.

    Parameters
    ----------
    rows
        Their first ``width`` columns stay, and the keys of other dimensions after the words.
    key
        The column of the key.
    """
    from es_skipping.spark.classic import functions as F

    names = [f"c{width + at}" for at in range(len(bits.words))]
    words = bits.frame.select(KEY, *(F.col(word).alias(name) for word, name in zip(bits.words, names, strict=True)))
    joined = rows.join(F.broadcast(words) if bits.is_small else words, F.col(key) == F.col(KEY), "left")
    # A row without a match has no effect on a join, so it has no bits
    found = [F.coalesce(F.col(name), F.lit(0).cast("bigint")).alias(name) for name in names]
    left = [name for name in rows.columns[width:] if name != key]
    together = joined.select(*rows.columns[:width], *found, *left)
    return together if bits.is_small else together.sortWithinPartitions("object")


def _by_key(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """One row per key, so that a join keeps the number of the fact's rows."""
    from es_skipping.spark.classic import functions as F

    found = rows.where(F.col(KEY).isNotNull()).groupBy(KEY)
    return found.agg(*(F.bit_or(name).alias(name) for name in names))


def _named(frame: DataFrame, name: str) -> Any:
    from es_skipping.predicates.show import quoted_name
    from es_skipping.spark.classic import functions as F

    return F.col(quoted_name(name))


# --- the parts of a definition ------------------------------------------------------------------------------------


def _opened(source: Source, table: str) -> Listing:
    """A dimension with its listing.

    Raises
    ------
    DatasetError, IndexDefinitionError
    """
    spark = source.df.sparkSession
    reading = Reading(table=table)
    opened = Source.open(spark, reading, source.settings)
    if opened.is_table or opened.format not in _FORMATS or opened.partition_columns:
        raise IndexDefinitionError(
            f"the dimension {table} is not a directory of {' or '.join(sorted(_FORMATS))} files without partitions"
        )
    return settled(spark, reading, opened)


def _snapshot(chain: Sequence[Listing]) -> str | None:
    if any(listing.unsettled for listing in chain):
        return None
    return snapshot_digest([listing_digest(one.key for one in listing.objects) for listing in chain])


def _key(source: Source, name: str) -> Column:
    found = resolve(source, sql_name(name)).operand
    if not isinstance(found, Column) or len(found.path) > 1 or found.type.name not in KEY_TYPES:
        raise ColumnError(
            f"{name!r} cannot be a key: a key is a column of whole numbers, decimals, strings, dates or timestamps"
        )
    return found


def _bound(source: Source, text: str) -> ResolvedColumn:
    found = resolve(source, text)
    if found.type.name not in BOUND_TYPES:
        raise ColumnError(f"{text!r} has type {found.type}, which {Induced.__name__} cannot bound")
    return found


def _facts(source: Source, used: Sequence[Operand]) -> dict[str, str]:
    return index_facts(source.format, used, source.schema, source.settings)


def _cuts(source: Source, column: ResolvedColumn, ranges: int) -> list[Value]:
    """Values that divide a sample of a column's rows into ranges of about as many rows each."""
    from es_skipping.spark.classic import functions as F

    frame = source.df
    chosen = frame.select(column_for_index(frame, column.text).alias("x")).where(F.col("x").isNotNull())
    rows = chosen.count()
    if rows > _SAMPLED_ROWS:
        chosen = chosen.sample(fraction=_SAMPLED_ROWS / rows, seed=1)
    array, _, _ = plain(chosen.toArrow()["x"].combine_chunks(), column.type)
    values = sorted(array.to_pylist())
    picked = dict.fromkeys(values[len(values) * at // ranges] for at in range(1, ranges) if values)
    return [python_bound(value, column.type) for value in picked]


def _range_predicates(index: Induced) -> Iterator[Predicate]:
    """For each range of each bound, in order, the condition that a value lies in it."""
    for bound in index.divided:
        for low, high in zip((None, *bound.cuts), (*bound.cuts, None), strict=True):
            ends: tuple[tuple[Comparator, Value | None], ...] = ((">=", low), ("<", high))
            parts: list[Predicate] = [
                Comparison(how, bound.operand, Literal(end, bound.operand.type)) for how, end in ends if end is not None
            ]
            yield normalise(And(tuple(parts)) if parts else NullTest(bound.operand, negated=True))
