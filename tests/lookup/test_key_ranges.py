"""Conditions that joined tables' metadata implies: their ranges, and what must be known before there is one."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata, Protection
from es_skipping.clauses.metadata import Fingerprints, Intervals, Metadata, Values
from es_skipping.errors import StoreUnavailable
from es_skipping.lookup.built_with import dataset_facts, index_facts
from es_skipping.lookup.functions import DeclaredFunctions
from es_skipping.lookup.induced import listing_digest
from es_skipping.lookup.joins import Dimension, Joins
from es_skipping.lookup.key_ranges import KeyMetadata, implied_by_joins, ranges_of
from es_skipping.lookup.lookup import look_up
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.lookup.request import ScanRequest
from es_skipping.predicates.codec import operand_to_data
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.stores.memory.store import MemoryStore

SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.caseSensitive": "false"}
KEY = parse_type("bigint")
DAY = parse_type("int")
JSON_NAMES = {"bigint": "long", "int": "integer"}
_numbers = itertools.count()


def minmax(low: Any, high: Any) -> Intervals:
    return Intervals(((low, high),), 0)


@dataclass
class Table:
    """A dataset in a store of its own: columns by name, and of each object the metadata of each column."""

    name: str
    columns: Mapping[str, DataType]
    objects: Sequence[Mapping[str, Metadata]]
    metadata: Mapping[str, str] = field(default_factory=dict)
    index_type: str = "MinMax"
    change: Mapping[str, Any] = field(default_factory=dict)
    format: str = "parquet"

    def __post_init__(self) -> None:
        self.store = MemoryStore(f"memory://key-ranges-{next(_numbers)}")
        schema = self.schema
        indexes = tuple(self._index(name, type) for name, type in self.columns.items())
        definition = DatasetDefinition(
            self.name,
            (f"file:/{self.name}",),
            self.format,
            indexes,
            schema="{}",
            built_with=dataset_facts(self.format, {}, schema),
        )
        put = [
            ObjectMetadata(id, 10, {self.id(name): known for name, known in one.items()})
            for id, one in zip(self.ids, self.objects, strict=True)
        ]
        with self.store.change(definition) as change:
            change.put(put)
            self.entry = change.publish()

    def id(self, column: str) -> str:
        return f"{self.index_type.lower()}({column})"

    def _index(self, name: str, type: DataType) -> IndexDefinition:
        operand = Column((name,), type)
        made = IndexDefinition(
            self.id(name),
            self.index_type,
            (name,),
            "intervals" if self.index_type in ("MinMax", "GapList") else "values",
            type,
            (operand_to_data(operand),),
            (type,),
            parameters={"length": 2} if self.index_type == "Prefix" else {},
            built_with=index_facts(self.format, [operand], self.schema, SETTINGS),
        )
        return replace(made, **self.change) if name.endswith("key") else made

    @property
    def schema(self) -> dict[str, Any]:
        fields = [
            {"name": name, "type": JSON_NAMES.get(str(type), str(type)), "nullable": True, "metadata": self.metadata}
            for name, type in self.columns.items()
        ]
        return {"type": "struct", "fields": fields}

    @property
    def ids(self) -> list[ObjectId]:
        return [ObjectId(f"file:/{self.name}/{n}", n + 1, 1) for n in range(len(self.objects))]

    def dimension(self, *filters: Any, listed: Sequence[ObjectId] | None = None) -> Dimension:
        """The whole table, or some of its objects, as another partitioned table has them."""
        listing = listing_digest(id.key for id in self.ids) if listed is None else None
        keys = frozenset(id.key for id in listed or ())
        return Dimension((f"file:/{self.name}",), self.format, {}, self.schema, {}, listing, keys, filters)

    def as_indexed(self) -> IndexedDataset:
        return IndexedDataset.of(self.store, self.entry)


class Mapped(Table):
    """One whose columns have names of their own in the files; the index of ``ssn`` has a key that is not here."""

    def _index(self, name: str, type: DataType) -> IndexDefinition:
        made = super()._index(name, type)
        secret = Protection("hashed", "env:ES_SKIPPING_NO_SUCH_KEY", "c", "s")
        return replace(made, protection=secret, needs=("hashed",)) if name == "ssn" else made

    @property
    def schema(self) -> dict[str, Any]:
        fields = [
            {**one, "metadata": {"delta.columnMapping.physicalName": f"p_{one['name']}"}}
            for one in super().schema["fields"]
        ]
        return {"type": "struct", "fields": fields}


def compared(comparator: str, column: str, value: Any, type: str = "int") -> Any:
    left = {"c": "AttributeReference", "t": type, "name": column}
    return {"c": comparator, "t": "boolean", "ch": [left, {"c": "Literal", "t": type, "v": value}]}


def facts(**given: Any) -> Table:
    """Ten objects with ten keys each."""
    objects = [{"key": minmax(10 * n, 10 * n + 9)} for n in range(10)]
    return Table("fact", {"key": KEY}, objects, **given)


def orders(objects: Sequence[Mapping[str, Metadata]] | None = None, **given: Any) -> Table:
    """Ten objects, in each ten keys of a day and two customers."""
    made = [
        {"o_key": minmax(10 * n, 10 * n + 9), "o_day": minmax(n, n), "o_cust_key": minmax(2 * n, 2 * n + 1)}
        for n in range(10)
    ]
    columns = {"o_key": KEY, "o_day": DAY, "o_cust_key": KEY}
    return Table("orders", columns, made if objects is None else objects, **given)


BEFORE_2 = compared("LessThan", "o_day", 2)
JOINED = ((-1, "key", 0, "o_key"),)


@dataclass
class Asked:
    implied: list[str]
    skipped: int
    by: tuple[str, ...] = ()


def asked(
    fact: Table,
    tables: Sequence[Table],
    dimensions: Sequence[Dimension | None],
    equal: Sequence[tuple[int, str, int, str]] = JOINED,
    **given: Any,
) -> Asked:
    """What a scan of the fact is told, and how many of its objects it skips."""
    joins = Joins(tuple(dimensions), tuple(equal))
    request = ScanRequest(
        "1", ("file:/fact",), "parquet", data_schema=fact.schema, settings=SETTINGS, filters=((),), joins=joins
    )
    request = replace(request, **given)
    functions, datasets = DeclaredFunctions(), [fact.as_indexed()]
    implied = implied_by_joins(
        request,
        datasets,
        functions.of(""),
        lambda one: [table.as_indexed() for table in tables if f"file:/{table.name}" in one.roots],
        KeyMetadata(),
        lambda: 9.0,
    )
    found = look_up(request, datasets, functions, lambda: 9.0, implied=implied)
    skipped = sum(answer.skipped for answers in found.answers for answer in answers)
    return Asked([show(one.predicate) for one in implied], skipped, found.implied_by)


def test_survivors_of_a_filter_bound_the_keys() -> None:
    table = orders()
    found = asked(facts(), [table], [table.dimension(BEFORE_2)])
    assert found.implied == ["key >= 0 AND key <= 19"]
    assert found.skipped == 8
    assert found.by == ("orders by MinMax(o_key): o_day < 2 (2 of 10 objects)",)


def test_a_filter_that_leaves_nothing() -> None:
    table = orders()
    assert asked(facts(), [table], [table.dimension(compared("LessThan", "o_day", 0))]).skipped == 10


def test_survivors_apart_from_each_other() -> None:
    table = orders()
    far = {"c": "Or", "t": "boolean", "ch": [BEFORE_2, compared("GreaterThan", "o_day", 8)]}
    assert asked(facts(), [table], [table.dimension(far)]).skipped == 7


def test_a_chain_of_tables() -> None:
    """Customers by segment, orders by customer, facts by order; and the end of a chain that nothing restricts."""
    customers = Table(
        "customers",
        {"c_key": KEY, "c_size": DAY},
        [{"c_key": minmax(4 * n, 4 * n + 3), "c_size": minmax(n, n)} for n in range(5)],
    )
    table = orders()
    equal = (*JOINED, (1, "c_key", 0, "o_cust_key"))
    small = customers.dimension(compared("LessThan", "c_size", 1))
    found = asked(facts(), [table, customers], [table.dimension(), small], equal)
    assert found.skipped == 8
    assert "customers by MinMax(c_key): c_size < 1 (1 of 5 objects)" in found.by[0]
    assert asked(facts(), [table, customers], [table.dimension(), customers.dimension()], equal).implied == []
    # a circle of equal columns is walked once
    circle = (*equal, (-1, "key", 1, "c_key"))
    assert asked(facts(), [table, customers], [table.dimension(BEFORE_2), small], circle).skipped == 10 - 1


def test_both_tables_of_a_scan_restrict_it() -> None:
    table, other = orders(), Table("other", {"x_key": KEY, "x": DAY}, orders().objects and [
        {"x_key": minmax(10 * n, 10 * n + 9), "x": minmax(n, n)} for n in range(10)
    ])  # fmt: skip
    dimensions = [table.dimension(BEFORE_2), other.dimension(compared("GreaterThan", "x", 0))]
    assert asked(facts(), [table, other], dimensions, (*JOINED, (-1, "key", 1, "x_key"))).skipped == 9


def test_nothing_is_implied_without_a_filter() -> None:
    table = orders()
    not_null = {"c": "IsNotNull", "t": "boolean", "ch": [{"c": "AttributeReference", "t": "bigint", "name": "o_key"}]}
    assert asked(facts(), [table], [table.dimension()]).implied == []
    assert asked(facts(), [table], [table.dimension(not_null)]).implied == []
    assert asked(facts(), [table], [None]).implied == []
    assert asked(facts(), [table], [table.dimension(compared("LessThan", "o_day", 99))]).implied == []


@pytest.mark.parametrize("change", ["one more", "one less", "another time"])
def test_the_listing_must_be_what_is_indexed(change: str) -> None:
    """A file that the store does not know, or knows as it was, may hold any key."""
    table = orders()
    listed = table.ids
    if change == "one more":
        listed = [*listed, ObjectId("file:/orders/new", 1, 1)]
    elif change == "one less":
        listed = listed[1:]
    else:
        listed = [replace(listed[0], mtime=2), *listed[1:]]
    whole = replace(table.dimension(BEFORE_2), listing=listing_digest(id.key for id in listed))
    assert asked(facts(), [table], [whole]).implied == []
    some = asked(facts(), [table], [table.dimension(BEFORE_2, listed=listed)])
    assert bool(some.implied) == (change == "one less"), "in a listing of some files, others may be missing"


def test_files_that_are_not_listed_have_no_keys() -> None:
    """They are in other partitions, or gone."""
    table = orders()
    found = asked(facts(), [table], [table.dimension(BEFORE_2, listed=table.ids[1:])])
    assert found.implied == ["key >= 10 AND key <= 19"]
    assert found.by == ("orders by MinMax(o_key): o_day < 2; its own pruning (1 of 10 objects)",)
    found = asked(facts(), [table], [table.dimension(listed=table.ids[3:5])])
    assert found.implied == ["key >= 30 AND key <= 49"]
    assert found.by == ("orders by MinMax(o_key): its own pruning (2 of 10 objects)",)
    assert asked(facts(), [table], [table.dimension(listed=[])]).skipped == 10


@pytest.mark.parametrize("known", [Intervals(None, 0), None])
def test_a_survivor_without_metadata_of_the_key_is_unknown(known: Metadata | None) -> None:
    objects = [dict(one) for one in orders().objects]
    if known is None:
        del objects[1]["o_key"]
    else:
        objects[1]["o_key"] = known
    table = orders(objects)
    assert asked(facts(), [table], [table.dimension(BEFORE_2)]).implied == []
    first = compared("LessThan", "o_day", 1)
    assert asked(facts(), [table], [table.dimension(first)]).skipped == 9, "object 1 does not survive"


def test_a_survivor_with_null_keys_only_adds_nothing() -> None:
    objects = [dict(one) for one in orders().objects]
    objects[1]["o_key"] = Intervals((), 10)
    table = orders(objects)
    assert asked(facts(), [table], [table.dimension(BEFORE_2)]).skipped == 9


@pytest.mark.parametrize(
    "given",
    [
        {"metadata": {"__COLLATIONS": {"o_key": "spark.UTF8_LCASE"}}},
        {"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
        {"change": {"protection": Protection("hashed", "env:K", "c", "s"), "needs": ("hashed",)}},
        {"change": {"built_with": {"spark.sql.caseSensitive": "true"}}},
        {"format": "json"},
    ],
    ids=["collated", "char", "protected", "built otherwise", "json"],
)
def test_keys_that_are_not_read(given: dict[str, Any]) -> None:
    table = orders(**given)
    assert asked(facts(), [table], [table.dimension(BEFORE_2)]).implied == []


@pytest.mark.parametrize(("mine", "theirs"), [("double", "double"), ("bigint", "int"), ("boolean", "boolean")])
def test_types_that_are_not_compared(mine: str, theirs: str) -> None:
    fact = Table("fact", {"key": parse_type(mine)}, facts().objects)
    table = Table("orders", {"o_key": parse_type(theirs), "o_day": DAY}, [dict(one) for one in _days()])
    assert asked(fact, [table], [table.dimension(BEFORE_2)]).implied == []


def _days() -> list[dict[str, Metadata]]:
    return [{"o_key": minmax(10 * n, 10 * n + 9), "o_day": minmax(n, n)} for n in range(10)]


def test_lists_of_values_name_the_keys() -> None:
    objects = [{"o_key": Values(frozenset({n, 50 + n}), 0), "o_day": Values(frozenset({n}), 0)} for n in range(10)]
    table = Table("orders", {"o_key": KEY, "o_day": DAY}, objects, index_type="ValueList")
    found = asked(facts(), [table], [table.dimension(compared("EqualTo", "o_day", 3))])
    assert found.implied == ["key IN (3, 53)"]
    assert found.skipped == 8


def test_an_index_of_parts_of_the_key_does_not_bound_it() -> None:
    """A list of prefixes is of the same kind as a list of values."""
    text = parse_type("string")
    fact = Table("fact", {"key": text}, [{"key": minmax(f"a{n}x", f"a{n}y")} for n in range(10)])
    objects = [{"o_key": Values(frozenset({f"a{n}"}), 0)} for n in range(10)]
    table = Table("orders", {"o_key": text}, objects, index_type="Prefix")
    filter = compared("EqualTo", "o_key", "a3xx", "string")
    assert asked(fact, [table], [table.dimension(filter)]).implied == []


def test_an_index_of_a_second_key_that_is_gone() -> None:
    """Another process dropped it since this one read the registry; the first key still says what it says."""
    rows = [{"key": minmax(10 * n, 10 * n + 9), "key2": minmax(n, n)} for n in range(10)]
    fact = Table("fact", {"key": KEY, "key2": KEY}, rows)
    others = [{"o_key": row["key"], "o_key2": row["key2"], "o_day": row["key2"]} for row in rows]
    table = Table("orders", {"o_key": KEY, "o_key2": KEY, "o_day": DAY}, others)
    equal = ((-1, "key", 0, "o_key"), (-1, "key2", 0, "o_key2"))
    assert len(asked(fact, [table], [table.dimension(BEFORE_2)], equal).implied) == 2
    definition, gone = table.entry.definition, table.id("o_key2")
    less = replace(definition, indexes=tuple(one for one in definition.indexes if one.id != gone))
    with table.store.change(less) as change:
        for object_id, row in zip(table.ids, others, strict=True):
            kept = {table.id(name): found for name, found in row.items() if name != "o_key2"}
            change.put([ObjectMetadata(object_id, 10, kept)])
        change.publish()
    found = asked(fact, [table], [table.dimension(BEFORE_2)], equal)
    assert (len(found.implied), found.skipped) == (1, 8)


def test_a_protected_column_that_was_renamed_is_not_named() -> None:
    """The report says which filter left the objects; without the key it says no value of a protected column."""
    days = [{"o_key": minmax(10 * n, 10 * n + 9), "o_day": minmax(n, n)} for n in range(10)]
    table = Mapped("orders", {"o_key": KEY, "o_day": DAY, "ssn": DAY}, days, format="delta")
    definition = replace(table.entry.definition, schema=json.dumps(table.schema))
    table.entry = replace(table.entry, definition=definition)
    for name in ("ssn", "x"):
        fields = [{**one, "name": name if one["name"] == "ssn" else one["name"]} for one in table.schema["fields"]]
        dimension = table.dimension(BEFORE_2, compared("EqualTo", name, 123456789))
        (by,) = asked(facts(), [table], [replace(dimension, data_schema={**table.schema, "fields": fields})]).by
        assert "o_day < 2" in by and "123456789" not in by


def test_a_store_that_fails_implies_nothing() -> None:
    class Failing(MemoryStore):
        def lookup(self, *given: Any, **named: Any) -> Any:
            raise StoreUnavailable("gone")

    table = orders()
    dimension = table.dimension(BEFORE_2)
    table.store = Failing(table.store.url)
    assert asked(facts(), [table], [dimension]).implied == []


# --- ranges -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["int", "bigint", "date", "timestamp", "decimal(9,2)", "string"])
@pytest.mark.parametrize("seed", range(20))
def test_ranges_cover_all_values_and_are_few(type: str, seed: int) -> None:
    dice = random.Random(seed)

    def value(number: int) -> Any:
        return {"decimal(9,2)": Decimal(number) / 4, "string": f"{number:06}"}.get(type, number)

    found: list[Metadata] = []
    held: set[Any] = set()
    for _ in range(dice.choice((1, 5, 200))):
        starts = sorted(dice.sample(range(100_000), 2 * dice.randint(1, 4)))
        pairs = tuple((value(low), value(high)) for low, high in zip(starts[::2], starts[1::2], strict=True))
        listed = frozenset(value(dice.randrange(100_000)) for _ in range(dice.randint(0, 9)))
        found.append(Intervals(pairs, 1) if dice.random() < 0.5 else Values(listed, 1))
        held |= {end for pair in pairs for end in pair} if isinstance(found[-1], Intervals) else listed
    ranges = ranges_of(found, parse_type(type))
    assert ranges is not None
    assert len(ranges) <= 64 or all(low == high for low, high in ranges)
    assert all(after[0] > before[1] for before, after in itertools.pairwise(ranges))
    assert all(any(low <= one <= high for low, high in ranges) for one in held)


def test_the_widest_gaps_stay() -> None:
    near = [minmax(3 * n, 3 * n + 1) for n in range(100)]
    far = [minmax(10_000 * n, 10_000 * n + 1) for n in range(1, 60)]
    ranges = ranges_of([*near, *far], parse_type("int"))
    assert ranges is not None and len(ranges) == 64
    assert set(ranges[-59:]) == {one.ranges[0] for one in far if one.ranges}


def test_what_is_not_known_has_no_ranges() -> None:
    assert ranges_of([minmax(1, 2), None], KEY) is None
    assert ranges_of([Intervals(None, 0)], KEY) is None
    assert ranges_of([Fingerprints(10, 1, b"", 0)], KEY) is None
    assert ranges_of([Intervals((), 3)], KEY) == ()
