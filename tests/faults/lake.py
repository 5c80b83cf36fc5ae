"""A small dataset, and what a query of it must do while something is broken, and afterwards."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.spark.services import service_of
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import warned

__all__ = ["FILES", "Lake"]

FILES = 8
_EACH = 10
_LONG_AGO = 1_700_000_000


class Lake:
    """Eight objects of ten rows each, and a session whose store is the one that breaks.

    Parameters
    ----------
    log
        Where warnings are seen.
    """

    def __init__(self, spark: SparkSession, folder: Path, url: str, log: Any, timeout: str = "5s") -> None:
        self.spark = spark
        self.folder = folder / "events"
        self.folder.mkdir()
        self.files = 0
        for _ in range(FILES):
            self.add()
        self._log = log
        for name, value in {"url": url, "timeout": timeout}.items():
            spark.conf.set(f"spark.es_skipping.store.{name}", value)
        spark.conf.set("spark.es_skipping.breaker.failures", "1000")
        esk.enable(spark)
        self.dataset = esk.Dataset(spark, str(self.folder))

    def add(self) -> None:
        """One more object, an old one."""
        first = self.files * _EACH
        path = self.folder / f"part-{self.files:02}.parquet"
        pq.write_table(pa.table({"id": range(first, first + _EACH)}), path)
        os.utime(path, (_LONG_AGO + self.files, _LONG_AGO + self.files))
        self.files += 1

    def create(self) -> None:
        """Index it."""
        self.dataset.create_indexes(esk.MinMax("id"))

    def _asked(self, first: int = 13, last: int = 15) -> tuple[list[int], Any]:
        self._log.clear()
        service_of(self.spark)._warned.clear()
        with esk.observe(self.spark) as report:
            df = self.spark.read.parquet(str(self.folder)).where(f"id BETWEEN {first} AND {last}")
            assert sorted(row.id for row in df.collect()) == list(range(first, last + 1))
        return num_files(df), report

    def skips_another(self) -> None:
        """A query that was not asked yet, whose answer nobody remembers, opens one object; nothing is warned of."""
        read, report = self._asked(44, 46)
        assert (read, report.failed, warned(self._log)) == ([1], 0, [])

    def skips(self, opened: int = 1) -> None:
        """A query returns its rows and opens only so many objects; nothing is warned of."""
        service_of(self.spark).registry.forget()
        read, report = self._asked()
        assert read == [opened]
        (scan,) = report.scans
        assert (scan.failed, scan.objects_skipped, scan.objects_total) == (False, self.files - opened, self.files)
        assert warned(self._log) == []

    def answers(self) -> None:
        """A query returns its rows, whatever it opens."""
        service_of(self.spark).registry.forget()
        self._asked()

    def reads(self, file: int, opened: int) -> None:
        """A query for the rows of one object returns them and opens so many objects."""
        first = file * _EACH + 3
        read, report = self._asked(first, first + 2)
        assert (read, report.failed, warned(self._log)) == ([opened], 0, [])

    def skips_as_before(self) -> None:
        """A query skips by what was known before the newest object came, and a warning says why."""
        service_of(self.spark).registry.forget()
        read, report = self._asked()
        assert read == [2]
        (scan,) = report.scans
        assert (scan.failed, scan.objects_skipped, scan.objects_total) == (False, self.files - 2, self.files)
        (line,) = warned(self._log)
        assert "is empty or cut off" in line
        self._log.clear()

    def reads_all(self, warning: str | None) -> None:
        """A query returns its rows from all objects; with a warning where the look-up failed, which is counted too."""
        read, report = self._asked()
        assert read == [self.files]
        (scan,) = report.scans
        assert (scan.failed, scan.objects_skipped) == (warning is not None, 0)
        assert report.failed == (warning is not None)
        if warning is None:
            assert warned(self._log) == []
            return
        (told,) = warned(self._log)
        assert told.startswith("this scan reads all its files, because the look-up failed: ")
        assert re.search(warning, told), told
        assert re.search(warning, scan.reason or ""), scan.reason

    def fails(self, work: Any, words: str) -> None:
        """A build or a refresh says what is wrong, and nothing of it is used."""
        with pytest.raises(esk.EsSkippingError, match=words):
            work()

    def refreshed(self) -> None:
        """The next refresh completes; then every object but one is skipped."""
        self.dataset.refresh()
        self.skips()
        assert self.dataset.health().coverage == 1.0
