"""How much new indexes can skip, as a build measures and reports it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.effectiveness import Effectiveness, effectiveness
from es_skipping.catalog import ObjectId, ObjectMetadata
from es_skipping.clauses.fingerprints import pack
from es_skipping.clauses.metadata import Boxes, Fingerprints, Intervals, Metadata, Values
from tests.spark.skipping_on_off import age, warned

CANNOT_HELP = "skips 0 % of the objects that lack a value: it cannot help, drop it or lay the data out by its column"


def spans(count: int, length: int) -> list[Metadata]:
    """Intervals of this length, one begins every ten."""
    return [Intervals(((10 * at, 10 * at + length),), 0) for at in range(count)]


def boxes(size: float) -> list[Metadata]:
    return [Boxes((((10.0 * at, 10 * at + size), (0.0, 1.0)),)) for at in range(20)]


@pytest.mark.parametrize(
    ("sample", "share"),
    [
        (spans(20, 5), 1.0),
        (spans(20, 10_000), 0.0),
        ([Intervals(((f"key-{at:04}", f"key-{at:04}é"),), 0) for at in range(20)], 1.0),
        ([Intervals(((f"key-{at:04}", f"key-9{at}"),), 0) for at in range(20)], 0.0),
        ([Intervals(((bytes([at]), b"z"),), 0) for at in range(8)], 0.0),
        ([Intervals(((0, 1), (9 * at, 9 * at), (900, 1000)), 0) for at in range(1, 21)], pytest.approx(0.33, abs=0.02)),
        ([Intervals((), 5)] * 20, None),
        ([Values(frozenset({at, at + 1}), 0) for at in range(20)], pytest.approx(1 - 1 / 20, abs=0.02)),
        ([Values(frozenset(range(4)), 0)] * 20, 0.0),
        (boxes(5), 1.0),
        (boxes(10_000), 0.0),
        ([Fingerprints(1000, 2, pack([at, at + 500], 1000), 0) for at in range(20)], 1.0),
        ([Fingerprints(1000 + at, 1, pack([7], 1000), 0) for at in range(20)], None),
        ([*[Values(frozenset({1}), 0)] * 10, Fingerprints(1000, 1, pack([7], 1000), 0)], 0.0),
        ([Intervals(((float("-inf"), float("inf")),), 0)] * 20, None),
        ([Intervals(((at, at),), 0) if at % 2 else Intervals((("a", "b"),), 0) for at in range(20)], "mixed"),
        (spans(7, 5), None),
    ],
)  # fmt: skip
def test_a_share_for_each_kind_of_metadata(sample: list[Metadata], share: Any) -> None:
    if share == "mixed":  # values that Python cannot compare
        watched = Effectiveness(["a"])
        assert list(watched.watched(ObjectMetadata(ObjectId("file:/a", 1, 1), 1, {"a": one}) for one in sample))
        assert watched.measured() == ()
    else:
        assert effectiveness(sample) == share


def test_random_rows_leave_an_interval_nothing() -> None:
    dice = random.Random(1)
    parts = [[dice.random() for _ in range(500)] for _ in range(50)]
    assert effectiveness([Intervals(((min(part), max(part)),), 0) for part in parts]) == 0


def test_each_object_has_the_same_chance() -> None:
    """The first objects overlap, the others do not: a sample of the first ones alone would say 0."""
    watched = Effectiveness(["a"])

    def found() -> Iterator[ObjectMetadata]:
        for at in range(4_000):
            low = 0 if at < 1_000 else 10 * at
            yield ObjectMetadata(ObjectId(f"file:/{at}", 1, 1), 1, {"a": Intervals(((low, low + 5),), 0)})

    assert sum(1 for _ in watched.watched(found())) == 4_000
    ((id, share),) = watched.measured()
    assert id == "a" and share == pytest.approx(1 - 1 / 16, abs=0.06)


def test_what_cannot_be_compared_is_not_sampled() -> None:
    watched = Effectiveness(["a", "b"])
    large, unknown = Values(frozenset(range(2_000)), 0), Intervals(None, None)
    found = (ObjectMetadata(ObjectId(f"file:/{at}", 1, 1), 1, {"a": large, "b": unknown}) for at in range(20))
    assert sum(1 for _ in watched.watched(found)) == 20
    assert watched.measured() == ()


def test_a_build_reports_indexes_that_cannot_help(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "d"
    spark.range(0, 1_000, 1, 10).selectExpr("id", "id % 10 AS kind", "hash(id) AS h").write.parquet(str(folder))
    age(folder)
    dataset = esk.Dataset(spark, str(folder))
    result = dataset.create_indexes(esk.MinMax("id"), esk.MinMax("kind"), esk.ValueList("kind"))
    shares = dict(result.effectiveness)
    assert shares == {"minmax(id)": 1, "minmax(kind)": 0, "valuelist(kind)": 0}
    assert [text for text in str(result).splitlines() if "skips" in text] == [
        "MinMax(id) skips 100 % of the objects that lack a value",
        f"MinMax(kind) {CANNOT_HELP}",
        f"ValueList(kind) {CANNOT_HELP}",
    ]
    (text,) = warned(caplog)
    assert text.startswith("MinMax(kind), ValueList(kind) can skip hardly any object")
    caplog.clear()
    assert dict(dataset.ensure_indexes(esk.MinMax("h"), esk.MinMax("id")).effectiveness) == {"minmax(h)": 0}
    assert len(warned(caplog)) == 1
    caplog.clear()
    assert dataset.refresh().effectiveness == () and not warned(caplog)
    assert not capsys.readouterr().out


def test_a_warning_names_five_of_many_indexes(caplog: pytest.LogCaptureFixture) -> None:
    ids = [f"minmax(c{number:02})" for number in range(60)]
    watched = Effectiveness(ids)
    found = (
        ObjectMetadata(ObjectId(f"file:/{at}", 1, 1), 1, dict.fromkeys(ids, Intervals(((0, 9),), 0)))
        for at in range(20)
    )
    assert sum(1 for _ in watched.watched(found)) == 20
    assert len(watched.measured()) == 60
    (text,) = warned(caplog)
    assert text.startswith("MinMax(c00), MinMax(c01), MinMax(c02), MinMax(c03), MinMax(c04) and 55 more indexes (")
