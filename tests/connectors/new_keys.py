"""New keys for the protected indexes of a table, from the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.cli import main, rotation
from es_skipping.spark.services import service_of, store_of

__all__ = ["check_new_keys"]


def check_new_keys(
    spark: SparkSession,
    table: str,
    opened: Callable[[str], int],
    append: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A hashed and a sealed index get a new key; queries open the same number of files before and after.

    Parameters
    ----------
    table
        Has four files and columns ``id`` and ``v``, which is ``v`` and the id.
    opened
        The number of files that a query with this filter opens.
    append
        Appends one file.
    """

    @contextmanager
    def this_session(args: argparse.Namespace) -> Iterator[SparkSession]:
        yield spark  # the command's own would end the process's one Spark

    monkeypatch.setattr(rotation, "spark_session", this_session)
    for variable, digit in (("OLD_KEY", "1"), ("NEW_KEY", "2"), ("LAST_KEY", "3")):
        monkeypatch.setenv(variable, digit * 64)
    dataset = esk.Dataset(spark, table=table)
    if dataset.is_indexed():
        dataset.drop_indexes(all=True)
    dataset.create_indexes(
        esk.ValueList("v", protect="hashed", key="env:OLD_KEY"), esk.MinMax("id", protect="sealed", key="env:OLD_KEY")
    )
    store = store_of(spark)
    entry = store.dataset(dataset.id)
    assert entry is not None
    name = entry.definition.table
    assert name is not None
    assert name.endswith(f".{table.rpartition('.')[2]}")

    def rotated(*arguments: str) -> dict[str, object]:
        assert main(["reindex", name, "--store", store.url, "--json", *arguments]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert isinstance(row, dict)
        return row

    def read() -> list[int]:
        service_of(spark).registry.forget()
        return [opened("v = 'v150'"), opened("id BETWEEN 150 AND 160"), opened("v = 'v150' OR id = 350")]

    assert read() == [1, 1, 2]
    capsys.readouterr()
    row, health = rotated("--to-key", "env:NEW_KEY"), dataset.health()
    assert row["rotated"] == ["valuelist(v)", "minmax(id)"]
    assert (row["format"], row["snapshot"]) == (health.table_format, health.snapshot)
    monkeypatch.delenv("OLD_KEY")
    assert read() == [1, 1, 2]
    assert rotated("--to-key", "env:NEW_KEY")["rotated"] == []
    append()  # what follows is a refresh by changes, under the new key
    done = dataset.refresh()
    assert (done.added, done.failed) == (1, ())
    assert read() == [1, 1, 2]
    rotated("--drop-old")
    dataset.drop_indexes(esk.ValueList("v"))
    assert rotated("--to-key", "env:LAST_KEY")["rotated"] == ["minmax(id)"], "sealed alone: no data are read"
    monkeypatch.delenv("NEW_KEY")
    service_of(spark).registry.forget()
    assert opened("id BETWEEN 150 AND 160") == 1
    assert dataset.refresh().added == 0
