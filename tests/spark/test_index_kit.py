"""Index types and filters of other people, through Spark: with both stores, and with every kind of mistake in them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from trigrams import Trigrams

import es_skipping as esk
from es_skipping.clauses.clause import Clause
from es_skipping.clauses.metadata import Kind, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.indexes import filters, registry
from es_skipping.indexes.base import Collector, Index, Target
from es_skipping.indexes.filters import filter_for
from es_skipping.predicates.tree import Comparison, Predicate
from es_skipping.predicates.types import DataType
from tests.services import forget_datasets, forget_look_ups
from tests.spark.skipping_on_off import age, objects_read, warned

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("timeout", "disk full", "started", "stopped")


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(filters, "_filters", {})
    caplog.set_level(logging.WARNING, "es_skipping")
    forget_look_ups()


@pytest.fixture(scope="module")
def path(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Twelve objects in which every n occurs and each message but in few: nothing that an order of rows would help."""
    base.sparkContext.addPyFile(str(ROOT / "examples" / "trigrams.py"))  # this module imports it, workers too
    path = tmp_path_factory.mktemp("kit") / "d"
    words = ", ".join(f"'{word}'" for word in WORDS)
    base.range(0, 1200, 1, 12).selectExpr(
        "id % 100 AS n",
        "id div 100 AS part",
        f"concat('node-', id % 7, ': ', array({words})[cast(id div 300 AS int)], ' at ', id) AS message",
    ).write.parquet(str(path))
    age(path)
    return str(path)


@pytest.mark.parametrize("kind", ["parquet", "elasticsearch"])
def test_the_example_works_with_both_stores(
    spark: SparkSession, path: str, kind: str, request: pytest.FixtureRequest
) -> None:
    if kind == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.es_skipping.strict", "true")
    dataset = esk.Dataset(spark, path)
    assert dataset.create_indexes(Trigrams("message")).unknown == ()
    opened = {
        where: objects_read(spark, lambda s, where=where: s.read.parquet(path).where(where))
        for where in (
            "message LIKE '%timeout%'",
            "message LIKE '%disk%full%'",
            "contains(message, 'stopped')",
            "message = 'node-0: started at 700'",
            "message LIKE '%ti_e%'",
            "message LIKE '%no such words%'",
            "NOT message LIKE '%timeout%'",
            "message IS NULL",
        )
    }
    assert list(opened.values()) == [[3], [3], [3], [1], [12], [0], [12], [0]]
    dataset.drop_indexes(all=True)


# --- registration -----------------------------------------------------------------------------------------------------

DISTRIBUTION = {
    "theirs/__init__.py": """
from es_skipping.clauses.questions import AnyOf
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.tree import Comparison, Literal

class Listed(ValueList):
    pass

def half(node, index, target):
    # part * 2 = v, so part = v / 2
    match node:
        case Comparison("=", left, Literal(value)) if getattr(left, "name", "") == "multiply":
            if left.arguments[0] == target.operands[0] and left.arguments[1].value == 2:
                return target.ask(AnyOf((value // 2,)))
""",
    "theirs-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n",
    "theirs-1.0.dist-info/entry_points.txt": """
[es_skipping.indexes]
Listed = theirs:Listed
[es_skipping.filters]
Listed.half = theirs:half
ValueList.gone = theirs:no_such_function
""",
}


def test_an_installed_package_brings_index_types_and_filters(
    spark: SparkSession, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in DISTRIBUTION.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    spark.sparkContext.addPyFile(str(tmp_path / "site" / "theirs" / "__init__.py"))
    assert "Listed" in registry.index_types()
    listed = registry.index_class("Listed")
    esk.Dataset(spark, path).create_indexes(listed("part"), esk.ValueList("n"))
    query = f"SELECT * FROM parquet.`{path}` WHERE part * 2L = 14"
    assert objects_read(spark, query) == [1]
    with esk.observe(spark) as report:
        assert objects_read(spark, f"SELECT * FROM parquet.`{path}` WHERE part = 3 AND n = 5") == [1]
    ((id, reason), *_) = report.scans[-1].unusable
    assert id == "valuelist(n)"
    assert "ValueList.gone of es_skipping.filters cannot be loaded" in reason
    del sys.modules["theirs"]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistaken(Index):
    """Makes the mistake that it is told to make."""

    column: Any
    mistake: str = ""
    kind = "values"

    @property
    def columns(self) -> tuple[Any, ...]:
        return (self.column,)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        return {"mistake": self.mistake}

    def check(self, types: Sequence[DataType]) -> None:
        pass

    def value_type(self, types: Sequence[DataType]) -> DataType:
        return types[0]

    def collector(self, types: Sequence[DataType]) -> Collector[Any]:
        return MistakenCollector(self.mistake)

    def label(self, node: Predicate, target: Target) -> Clause | None:
        if not isinstance(node, Comparison):
            return None
        match self.mistake:
            case "label raises":
                raise ValueError("no luck with labels")
            case "no clause":
                return "part = 7"  # type: ignore[return-value]
            case "wrong value":
                return target.ask(AnyOf(("seven",)))
        return target.ask(AnyOf((7,)))


class MistakenCollector(Collector[Any]):
    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def partial(self, columns: Sequence[pa.Array]) -> Any:
        if self.mistake == "partial raises":
            raise ValueError("no luck with partials")
        return frozenset(columns[0].to_pylist())

    def merge(self, first: Any, second: Any) -> Any:
        return first | second

    def finish(self, partial: Any) -> Any:
        match self.mistake:
            case "finish raises":
                raise ValueError("no luck with finishing")
            case "no metadata":
                return {"values": partial}
            case "wrong metadata":
                return Values(frozenset(map(str, partial)), 0)
            case "missing":
                return None
        return Values(partial, 0)


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("partial raises", "ValueError: no luck with partials"),
        ("finish raises", "ValueError: no luck with finishing"),
        ("no metadata", "is not metadata of kind values"),
        ("wrong metadata", "is not a value of type bigint"),
        ("missing", ""),
    ],
)
def test_a_mistake_in_a_collector_is_unknown_and_named(
    spark: SparkSession, path: str, mistake: str, named: str, caplog: Any
) -> None:
    registry.register(Mistaken)
    result = esk.Dataset(spark, path).create_indexes(Mistaken("part", mistake), esk.MinMax("part"))
    assert (result.added, result.failed) == (12, ())
    id = f"mistaken(part,mistake={mistake})"
    if named:
        ((failed, why),) = result.unknown
        assert failed == id
        assert named in why
        assert named in "".join(warned(caplog))
    else:
        assert result.unknown == ()
    # the clause of the index alone would skip everything but part 7; nothing is known, so the other index decides
    assert objects_read(spark, f"SELECT * FROM parquet.`{path}` WHERE part = 5") == [1]


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ("label raises", "it failed at part = 5: ValueError: no luck with labels"),
        ("no clause", "'part = 7' is not a clause"),
        ("wrong value", "it asks for 'seven', which is not a value of type bigint"),
    ],
)
def test_a_mistake_in_a_label_costs_the_index_alone_and_is_named(
    spark: SparkSession, path: str, mistake: str, named: str, caplog: Any
) -> None:
    registry.register(Mistaken)
    esk.Dataset(spark, path).create_indexes(Mistaken("part", mistake), esk.MinMax("part"))
    query = f"SELECT * FROM parquet.`{path}` WHERE part = 5"
    with esk.observe(spark) as report:
        assert objects_read(spark, query) == [1]
    ((id, reason),) = report.scans[-1].unusable
    assert id == f"mistaken(part,mistake={mistake})"
    assert named in reason
    assert named in "".join(warned(caplog))
    assert named in str(esk.explain(spark.sql(query)))


def test_a_mistake_in_a_filter_costs_that_filter_alone(spark: SparkSession, path: str) -> None:
    @filter_for(esk.ValueList)
    def broken(node: Predicate, index: Index, target: Target) -> Clause | None:
        raise ValueError("no luck with filters")

    esk.Dataset(spark, path).create_indexes(esk.ValueList("part"))
    with esk.observe(spark) as report:
        assert objects_read(spark, f"SELECT * FROM parquet.`{path}` WHERE part = 5") == [1]
    assert "no luck with filters" in report.scans[-1].unusable[0][1]


def test_a_type_that_is_no_longer_there_is_named(spark: SparkSession, path: str) -> None:
    registry.register(Mistaken)
    esk.Dataset(spark, path).create_indexes(Mistaken("part"), esk.MinMax("part"))
    del registry._registered["Mistaken"]
    forget_datasets()
    with esk.observe(spark) as report:
        assert objects_read(spark, f"SELECT * FROM parquet.`{path}` WHERE part = 5") == [1]
    assert "unknown index type 'Mistaken'" in report.scans[-1].unusable[0][1]


def test_a_class_without_a_kind_is_refused_at_once() -> None:
    class Kindless(Mistaken):
        kind: Kind = "heaps"  # type: ignore[misc, assignment]

    with pytest.raises(esk.IndexDefinitionError, match=r"Kindless: kind is 'heaps'.*intervals"):
        registry.register(Kindless)
