"""A query's look-up and `explain` rule the same objects out, for every predicate; without Spark.

`tests/soundness/test_semantics.py` holds the same of each line of the table of semantics, as Spark plans it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Metadata
from es_skipping.indexes.base import Index
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.valuelist import ValueList
from es_skipping.lookup import reply
from es_skipping.lookup.built_with import dataset_facts, index_facts
from es_skipping.lookup.reply import PROTOCOL
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.service import LookupService
from es_skipping.predicates.codec import operand_to_data, value_to_data
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_predicate
from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Constant,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Operand,
    Or,
    Predicate,
)
from es_skipping.stores.base import KEY_BYTES
from es_skipping.stores.files import Files
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.testing.rows import arrow_array
from tests.examples import examples
from tests.predicates.rows import COLUMNS, COMPARATORS, EDGES, predicates

Tree = dict[str, Any]
ROOT = "file:/data/t"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": column.path[0], "type": str(column.type), "nullable": True, "metadata": {}}
        for column in COLUMNS.values()
    ],
}
CLASSES = {
    "=": "EqualTo",
    "<=>": "EqualNullSafe",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}
TESTS = {"starts": "StartsWith", "ends": "EndsWith", "contains": "Contains", "like": "Like"}


def tree(name: str, *children: Tree, t: str = "boolean", **more: Any) -> Tree:
    return {"c": name, "t": t, "ch": list(children), **more}


def operand_tree(operand: Operand) -> Tree:
    """An operand as the shim sends it."""
    match operand:
        case Column((name,), type):
            return {"c": "AttributeReference", "t": str(type), "name": name}
        case Literal(value, type):
            return {"c": "Literal", "t": str(type), "v": None if value is None else value_to_data(value, type)}
        case Cast(child, type, mode, zone):
            return tree("Cast", operand_tree(child), t=str(type), mode=mode, zone=zone)
        case Call(name, arguments, type):
            return tree(name, *map(operand_tree, arguments), t=str(type))
    raise AssertionError(operand)


def predicate_tree(predicate: Predicate) -> Tree:
    """A predicate as the shim sends it."""
    match predicate:
        case And(children) | Or(children):
            first, *others = map(predicate_tree, children)
            for other in others:
                first = tree("And" if isinstance(predicate, And) else "Or", first, other)
            return first
        case Not(child):
            return tree("Not", predicate_tree(child))
        case Constant(value):
            return operand_tree(Literal(value, COLUMNS["boolean"].type))
        case Comparison("<>", left, right):
            return tree("Not", tree("EqualTo", operand_tree(left), operand_tree(right)))
        case Comparison(comparator, left, right):
            return tree(CLASSES[comparator], operand_tree(left), operand_tree(right))
        case NullTest(operand, negated):
            return tree("IsNotNull" if negated else "IsNull", operand_tree(operand))
        case IsIn(operand, values, negated, has_null):
            listed = [Literal(value, operand.type) for value in (*values, *([None] if has_null else []))]
            return _unless(negated, tree("In", operand_tree(operand), *map(operand_tree, listed)))
        case Matches(test, operand, pattern, escape, negated):
            sides = operand_tree(operand), operand_tree(Literal(pattern, COLUMNS["string"].type))
            more = {"a": {"escapeChar": escape}} if test == "like" else {}
            return _unless(negated, tree(TESTS[test], *sides, **more))
        case Holds(call, negated):
            return _unless(negated, operand_tree(call))
    raise AssertionError(predicate)


def _unless(negated: bool, made: Tree) -> Tree:
    return tree("Not", made) if negated else made


class Alone:
    """A host without a JVM."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self, url: str) -> Files:
        return LocalFiles(self._folder)

    def records(self, since: int) -> tuple[int, list[dict[str, Any]]]:
        return since, []

    def forget_unindexed(self) -> None:
        pass

    def application(self) -> str | None:
        return None


@pytest.fixture(scope="module", params=["memory", "parquet"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[LookupService, Any]:
    """A service whose store knows, by every column, an object for each edge of its type and one for each two."""
    folder = tmp_path_factory.mktemp("store")
    url = "memory://explain" if request.param == "memory" else folder.as_uri()
    settings = {"spark.es_skipping.store.url": url, "spark.es_skipping.store.timeout": "60s"}
    service = LookupService(Alone(folder))
    store = service.store(settings)
    indexes = tuple(_defined(index, column) for column in COLUMNS.values() for index in _indexes(column))
    definition = DatasetDefinition(
        "t", (ROOT,), "parquet", tuple(one for one, _ in indexes), built_with=dataset_facts("parquet", {}, SCHEMA)
    )
    with store.change(definition) as change:
        change.put(_objects(indexes))
        change.publish()
    return service, settings


def _indexes(column: Column) -> Iterator[Index]:
    yield MinMax(column.path[0])
    yield ValueList(column.path[0])


def _defined(index: Index, column: Column) -> tuple[IndexDefinition, Index]:
    operands, name = (column,), column.path[0]
    return (
        IndexDefinition(
            f"{type(index).__name__.lower()}({name})",
            type(index).__name__,
            (name,),
            index.kind,
            index.value_type([column.type]),
            (operand_to_data(column),),
            (column.type,),
            dict(index.parameters),
            index_facts("parquet", operands, SCHEMA, {}),
        ),
        index,
    )


def _objects(indexes: tuple[tuple[IndexDefinition, Index], ...]) -> Iterator[ObjectMetadata]:
    most = max(map(len, EDGES.values()))
    for at in range(2 * most):
        metadata: dict[str, Metadata] = {}
        for definition, index in indexes:
            (type,) = definition.column_types
            edges = (*EDGES[str(type)], None)
            wide = [edges[at % len(edges)], edges[(at * 5 + 2) % len(edges)]]
            collector = index.collector([type])
            found = collector.finish(collector.partial([arrow_array(wide[: 1 + at // most], type)]))
            if found is not None:
                metadata[definition.id] = found
        yield ObjectMetadata(ObjectId(f"{ROOT}/{at}.parquet", 100 + at, 1_700_000_000_000), 2, metadata)


def request_text(settings: Any, predicate: Predicate, schema: Any, *, objects: int) -> str:
    """What the shim sends of a scan with one filter."""
    return json.dumps(
        {
            "v": PROTOCOL,
            "scan": "1",
            "session": "s",
            "execution": None,
            "table": None,
            "roots": [ROOT],
            "format": "parquet",
            "options": {},
            "dataSchema": schema,
            "partitionSchema": {"fields": []},
            "settings": settings,
            "objects": objects,
            "bytes": 1,
            "filters": [[predicate_tree(predicate)]],
        }
    )


def skipped(service: LookupService, settings: Any, predicate: Predicate) -> tuple[bytes, set[bytes]]:
    """What a query is told, and the objects that `explain` rules out."""
    text = request_text(settings, predicate, SCHEMA, objects=22)
    told = service.answer(text)
    explained = service.explain(ScanRequest.parse(text))
    assert [part.verdict.trace is not None for part in explained.flat] == [True]
    expected = reply.skip(explained.answers) if explained.rules_out else reply.nothing(explained.reason or "")
    assert told == expected
    keys = b"".join(answer.skip for answers in explained.answers for answer in answers)
    return told, {keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)}


def test_every_comparison_at_the_edges(asked: tuple[LookupService, Any]) -> None:
    few = asked[1]["spark.es_skipping.store.url"].startswith("file:")  # which takes 20 times as long
    ruled_out = 0
    for name, column in COLUMNS.items():
        for edge in EDGES[name][-1:] if few else EDGES[name]:
            for comparator in COMPARATORS:
                compared = Comparison(comparator, column, Literal(edge, column.type))
                for predicate in (compared, Not(compared)):
                    ruled_out += len(skipped(*asked, predicate)[1])
        for predicate in (NullTest(column), NullTest(column, negated=True), IsIn(column, EDGES[name], negated=True)):
            ruled_out += len(skipped(*asked, predicate)[1])
    assert ruled_out > (500 if few else 5_000)


@given(predicate=predicates())
@examples(300)
def test_every_predicate(asked: tuple[LookupService, Any], predicate: Predicate) -> None:
    skipped(*asked, predicate)


@given(predicate=predicates())
@examples(200)
def test_the_trees_of_this_test_mean_what_they_were_made_of(predicate: Predicate) -> None:
    assert normalise(read_predicate(predicate_tree(predicate))) == normalise(predicate)
