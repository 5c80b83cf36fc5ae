"""The features of a table in column groups hold for the session that evaluated them, and for what was stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping import layout
from es_skipping.layout.groups.manifest import MANIFEST
from tests.layout.manifests import blocks_of, manifest_of
from tests.layout.spark.test_groups import FORMAT, column_groups, rows_of
from tests.spark.building import new_session, spark
from tests.spark.objects_read import blocks_read

__all__ = ["spark"]

ZONE = "spark.sql.session.timeZone"
HOUR = "hour(at) = 5"


@pytest.fixture
def session(tmp_path: Path) -> SparkSession:
    return new_session(tmp_path)


def kept(df: DataFrame, place: Path) -> DataFrame:
    """The same rows, read from files."""
    df.write.parquet(str(place))
    return df.sparkSession.read.parquet(str(place))


def hours(session: SparkSession, first: int, end: int) -> DataFrame:
    return session.range(first, end, 1, 1).selectExpr("id", "timestamp_seconds(1700000000 + id * 3600) AS at")


def opened(session: SparkSession, path: Path, filter: str) -> int:
    """Blocks that are read with skipping on; the rows are those with it off."""
    df = session.read.format(FORMAT).load(str(path)).where(filter)
    esk.disable(session)
    expected = rows_of(df.select("*"))
    esk.enable(session)
    assert rows_of(df) == expected != []
    (blocks,) = blocks_read(df)
    return blocks


def test_another_zone_never_takes_them_for_its_own(session: SparkSession, tmp_path: Path) -> None:
    """`hour` is another one in each zone: neither indexing again nor appending may pass one's for the other's."""
    path = tmp_path / "groups"
    session.conf.set(ZONE, "UTC")
    df = kept(hours(session, 0, 480), tmp_path / "lake")
    done = layout.write_groups(df, column_groups(df, ((("id", "at"), (HOUR,)),)), str(path), min_rows=20)
    (blocks,) = done.blocks
    utc = opened(session, path, HOUR)
    assert utc < blocks
    session.conf.set(ZONE, "Asia/Tokyo")
    assert opened(session, path, HOUR) == blocks
    assert layout.index_groups(session, str(path)) == 0
    assert opened(session, path, HOUR) == blocks, "it has no features of Tokyo's"
    session.conf.set(ZONE, "UTC")
    assert opened(session, path, HOUR) == utc, "those of UTC stay"
    session.conf.set(ZONE, "Asia/Tokyo")
    status = layout.status(session, str(path))
    assert isinstance(status, layout.GroupStatus)
    why = f"{ZONE} = UTC when they were written, Asia/Tokyo here"
    assert (status.unindexed, status.elsewhere) == (0, {why: blocks})
    assert f"{blocks} blocks are never skipped by this session: {why}" in str(status)
    session.conf.set(ZONE, "UTC")
    assert layout.index_groups(session, str(path)) == blocks
    assert opened(session, path, HOUR) == utc
    # rows that another zone appends have features of that zone
    session.conf.set(ZONE, "Asia/Tokyo")
    (added,) = layout.append_groups(hours(session, 480, 720), str(path)).blocks
    everything = blocks_of(path)
    assert opened(session, path, HOUR) == everything == blocks + added
    session.conf.set(ZONE, "UTC")
    assert opened(session, path, HOUR) == utc + added
    session.conf.set(ZONE, "Asia/Tokyo")
    assert layout.index_groups(session, str(path)) == added
    assert blocks <= opened(session, path, HOUR) < everything
    session.conf.set(ZONE, "UTC")
    assert opened(session, path, HOUR) == everything


@pytest.mark.parametrize(
    ("settings", "value", "stored"),
    [
        (
            {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
            "timestamp_micros(id * 1000 + 7)",
            "at = timestamp_micros(5000)",
        ),
        (
            {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"},
            "date_add(DATE'1582-10-01', cast(id AS int))",
            "at = DATE'1582-10-15'",
        ),
    ],
)
def test_a_session_that_stores_less_than_it_has(
    session: SparkSession, tmp_path: Path, settings: dict[str, str], value: str, stored: str
) -> None:
    """What is written is what the features were evaluated on, whatever else the session has writers do."""
    df = kept(session.range(0, 60, 1, 1).selectExpr("id", f"{value} AS at"), tmp_path / "lake")
    for key, setting in settings.items():
        session.conf.set(key, setting)
    expected = rows_of(df)
    groups = column_groups(df, ((("id", "at"), (stored,)),))
    path = tmp_path / "groups"
    layout.write_groups(df, groups, str(path), min_rows=5)
    esk.enable(session)
    there = session.read.format(FORMAT).load(str(path))
    assert rows_of(there) == expected
    assert rows_of(there.where(stored)) == rows_of(df.where(stored))
    layout.append_groups(df, str(path))
    assert session.read.format(FORMAT).load(str(path)).where(stored).count() == 2 * df.where(stored).count()


def test_a_table_that_does_not_say_how_they_were_evaluated(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "groups"
    df = kept(hours(session, 0, 100), tmp_path / "lake")
    layout.write_groups(df, column_groups(df, ((("id", "at"), ("id < 50",)),)), str(path), min_rows=10)
    whole = manifest_of(path)
    assert len({id(one.built_with) for one in whole.partitions}) == 1
    text = (path / MANIFEST).read_text("utf-8")
    (path / MANIFEST).write_text(text.replace('"built_with"', '"built"'), "utf-8")
    assert layout.index_groups(session, str(path)) == 0
    assert opened(session, path, "id < 50") == blocks_of(path)
