"""`Induced`: what a join with a dimension says of each object of a fact."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

from es_skipping.clauses.clause import Ask, Clause, conjunction
from es_skipping.clauses.metadata import Kind, Values
from es_skipping.clauses.questions import OtherThan
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.features import WORD_BITS, union_of_words
from es_skipping.indexes.foreignkey import ForeignKey
from es_skipping.indexes.toolkit.arguments import require_column, require_supported
from es_skipping.predicates.codec import operand_from_data, value_from_data
from es_skipping.predicates.implied import Conditions
from es_skipping.predicates.normal import any_of
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Operand, Predicate
from es_skipping.predicates.truth import predicate_of
from es_skipping.predicates.types import DataType, Value
from es_skipping.predicates.value_sets import at_most

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BOUND_TYPES", "KEY_TYPES", "MAX_BITS", "Bound", "Hop", "Induced"]

KEY_TYPES: Final = (
    "tinyint", "smallint", "int", "bigint", "decimal", "string", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
"""Types whose values a join compares by their bytes."""
BOUND_TYPES: Final = KEY_TYPES
MAX_BITS: Final = 400
"""Conditions and ranges of one index: a store compares an object's whole list."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One foreign key of a chain, as the build resolved it.

    Parameters
    ----------
    column, key
        The names of the two columns as their files spell them.
    built_with, facts
        The facts of the dimension as a dataset, and of the columns used.
    """

    column: str
    key: str
    built_with: Mapping[str, str]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bound:
    """The ranges of one column of the dimension: below the first cut, between each two, and from the last on."""

    operand: Operand
    cuts: tuple[Value, ...]


@dataclass(frozen=True, init=False)
class Induced(Index):
    """The conditions on a dimension that the rows of each object of a fact meet through a foreign key.

    A query that joins the fact with the dimension skips objects by its filter on the dimension: ``orderdate < '1993'``
    on ``orders`` skips every object of ``lineitem`` whose orders are all later. The index pays if the rows of the fact
    were laid out by these conditions, or lie roughly in their order: `es_skipping.layout.SOP` with ``joins`` does that.

    Each object's metadata names the listing of the dimension that it was collected with. A query uses it only if its
    own scan of the dimension lists the same files. After any change of the dimension the fact's objects are read, until
    `es_skipping.Dataset.refresh` of the fact collects them again.

    Parameters
    ----------
    *keys
        The foreign key; for a chain of dimensions several, each from the dimension before.
    conditions
        SQL conditions on the (last) dimension.
    bounds
        Columns of it whose range of values is kept.
    ranges
        Number of ranges that a bound divides its column's values into.

    Examples
    --------
    >>> Induced(ForeignKey("l_orderkey", "orders.o_orderkey"), bounds=["o_orderdate"])
    Induced(l_orderkey -> orders.o_orderkey: o_orderdate)
    """

    keys: tuple[ForeignKey, ...]
    conditions: tuple[str, ...]
    bounds: tuple[str, ...]
    ranges: int
    resolved: str = field(repr=False)
    """The dimensions as a build resolved them, in JSON; empty before."""
    snapshot: str = field(repr=False)
    """Digest of the dimensions' listing: of the latest build, or of a query (`at`)."""

    kind: ClassVar[Kind] = "values"

    def __init__(
        self,
        *keys: ForeignKey,
        conditions: Sequence[str] = (),
        bounds: Sequence[str] = (),
        ranges: int = 64,
        resolved: str = "",
        snapshot: str = "",
        protect: str | None = None,
        key: str | None = None,
    ) -> None:
        if not keys or not all(isinstance(key, ForeignKey) for key in keys):
            raise IndexDefinitionError(
                'Induced: pass a ForeignKey first, such as ForeignKey("l_orderkey", "orders.o_orderkey")'
            )
        for before, each in zip((None, *keys), keys, strict=False):
            if each.source != (None if before is None else before.table):
                wanted = "a column of the fact, without a table" if before is None else f"a column of {before.table}"
                raise IndexDefinitionError(f"Induced: the key {each.column!r} must be {wanted}")
        if not conditions and not bounds:
            raise IndexDefinitionError('Induced: pass conditions or bounds, such as bounds=["o_orderdate"]')
        if isinstance(conditions, str) or isinstance(bounds, str):
            raise IndexDefinitionError("Induced: conditions and bounds are lists")
        for text in (*conditions, *bounds):
            require_column(self, "a condition or bound", text)
        if not isinstance(ranges, int) or ranges < 2:
            raise IndexDefinitionError(f"Induced: ranges is {ranges!r}; give a whole number of at least 2")
        if len(conditions) + ranges * len(bounds) > MAX_BITS:
            raise IndexDefinitionError(
                f"Induced: {len(conditions)} conditions and {ranges} ranges for each of {len(bounds)} bounds are more "
                f"than {MAX_BITS}; pass fewer, or make several indexes"
            )
        super().__init__(protect=protect, key=key)
        for name, value in {
            "keys": keys,
            "conditions": tuple(conditions),
            "bounds": tuple(bounds),
            "ranges": ranges,
            "resolved": resolved,
            "snapshot": snapshot,
        }.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        chain = " -> ".join([self.keys[0].column, *(key.references for key in self.keys)])
        return f"{self.type}({chain}: {', '.join((*self.conditions, *self.bounds))})"

    __repr__ = __str__

    # --- the stored form ------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.keys[0].name,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        asked = {
            "keys": [[key.column, key.references] for key in self.keys],
            "conditions": self.conditions,
            "bounds": self.bounds,
        }
        return {
            "asked": json.dumps(asked, ensure_ascii=False),
            "ranges": self.ranges,
            "resolved": self.resolved,
            "snapshot": self.snapshot,
        }

    @property
    def naming(self) -> Mapping[str, int | float | str]:
        return {"ranges": self.ranges} if self.ranges != 64 else {}

    @property
    def changing(self) -> frozenset[str]:
        return frozenset({"resolved", "snapshot"})

    def named_by(self, columns: Sequence[str]) -> list[str]:
        asked = str(self.parameters["asked"])
        tables = [key.table.strip("`").rsplit("/", 1)[-1] for key in self.keys]
        return [*columns, *tables, hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:12]]

    @classmethod
    def from_definition(cls, columns: Sequence[Any], parameters: Mapping[str, Any]) -> Induced:
        asked = json.loads(parameters["asked"])
        return cls(
            *(ForeignKey(*key) for key in asked["keys"]),
            conditions=asked["conditions"],
            bounds=asked["bounds"],
            **{name: parameters[name] for name in ("ranges", "resolved", "snapshot")},
        )

    def at(self, snapshot: str) -> Induced:
        """The same index for dimensions whose listing has this digest."""
        changed = copy.copy(self)
        object.__setattr__(changed, "snapshot", snapshot)
        return changed

    # --- what a build resolved ------------------------------------------------------------------------------------

    @property
    def hops(self) -> tuple[Hop, ...]:
        """The resolved foreign keys."""
        return _read(self.resolved).hops

    @property
    def divided(self) -> tuple[Bound, ...]:
        """The resolved bounds, with the values that divide them."""
        return _read(self.resolved).bounds

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What the conditions and the bounds are on, to recognise in a filter on the dimension."""
        found = _read(self.resolved)
        return (*found.conditions, *(bound.operand for bound in found.bounds))

    # --- collecting -----------------------------------------------------------------------------------------------

    def check(self, types: Sequence[DataType]) -> None:
        require_supported(self, types, "a key: a whole number, decimal, string, date or timestamp", *KEY_TYPES)

    def collected_arrays(self, columns: Sequence[pa.Array]) -> list[pa.Array] | None:
        return None

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return DataType("string")

    def collector(self, types: Sequence[DataType]) -> Collector[tuple[int, ...]]:
        return _BitsCollector(_of(self.snapshot))

    # --- asking ---------------------------------------------------------------------------------------------------

    def label(self, node: Predicate, target: Target) -> Clause | None:
        """The clause of a node of a filter *on the dimension*, for the listing `snapshot`.

        It is true of an object whose metadata is of another listing: the object's list then holds a name that the
        question does not allow.
        """
        known = _read(self.resolved)
        asks = [
            self._asked(target, {number}, show(known.known.predicates[number]))
            for number in known.known.implied_by(node)
        ]
        if numbers := known.known.one_of(node):
            asks.append(self._asked(target, set(numbers), show(any_of(known.known.predicates[n] for n in numbers))))
        first = len(known.conditions)
        for bound in known.bounds:
            reached = _reached(bound, node)
            if reached is not None:
                numbers_of_bound = {first + at for at in reached}
                asks.append(self._asked(target, numbers_of_bound, f"a row with {show(node)} in the dimension"))
            first += len(bound.cuts) + 1
        return conjunction(asks) if asks else None

    def _asked(self, target: Target, wanted: set[int], about: str) -> Ask:
        """Whether an object has one of these bits, or is of another listing of the dimension."""
        others = (str(bit) for bit in range(_read(self.resolved).bits) if bit not in wanted)
        return Ask(target.id, OtherThan((_of(self.snapshot), *others)), about=about)


def _of(snapshot: str) -> str:
    """The value that names the dimensions' listing in an object's list."""
    return f"of {snapshot}"


@dataclass(frozen=True)
class _Resolved:
    hops: tuple[Hop, ...]
    conditions: tuple[Operand, ...]
    bounds: tuple[Bound, ...]
    known: Conditions

    @property
    def bits(self) -> int:
        return len(self.conditions) + sum(len(bound.cuts) + 1 for bound in self.bounds)


@lru_cache(maxsize=256)
def _read(text: str) -> _Resolved:
    data = json.loads(text)
    conditions = tuple(map(operand_from_data, data["conditions"]))
    bounds = []
    for one in data["bounds"]:
        operand = operand_from_data(one["operand"])
        bounds.append(Bound(operand, tuple(value_from_data(cut, operand.type) for cut in one["cuts"])))
    return _Resolved(
        tuple(Hop(**hop) for hop in data["hops"]),
        conditions,
        tuple(bounds),
        Conditions(list(map(predicate_of, conditions))),
    )


def _reached(bound: Bound, node: Predicate) -> set[int] | None:
    """The ranges of a bound that hold a value of some row that satisfies a node; None if that may be any row."""
    values = at_most(node, bound.operand)
    if values.everything or values.null:  # no type of a bound has NaN
        return None
    reached = set()
    edges = (None, *bound.cuts, None)
    for at, (low, high) in enumerate(pairwise(edges)):  # from low on, and below high
        for stretch in values.stretches:
            below = high is not None and stretch.low is not None and stretch.low >= high
            ends_before = low is not None and stretch.high is not None and stretch.high < low
            ends_at = low is not None and stretch.high == low and stretch.high_open
            if not (below or ends_before or ends_at):
                reached.add(at)
    return reached


class _BitsCollector(Collector["tuple[int, ...]"]):
    """The bits of the dimension's rows that the rows of an object refer to, joined by OR."""

    repeats_matter = False

    def __init__(self, of: str) -> None:
        self._of = of

    def partial(self, columns: Sequence[pa.Array]) -> tuple[int, ...]:
        return union_of_words(columns)

    def merge(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(one | other for one, other in zip(first, second, strict=True))

    def finish(self, partial: tuple[int, ...]) -> Values:
        bits = (
            str(number * WORD_BITS + bit)
            for number, word in enumerate(partial)
            for bit in range(WORD_BITS)
            if word >> bit & 1
        )
        return Values(frozenset([self._of, *bits]), nulls=0)
