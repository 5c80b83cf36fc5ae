"""Random filters on survivors against all files, by DuckDB, Polars and pyarrow.

python -m tests.engines.fuzz --filters 5000 --seed 22 --store parquet
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import es_skipping as esk
from tests.engines.filters import PEERS, Filter, Peer, spark_text
from tests.engines.lake import PARTITIONS, SCHEMA, values_near

__all__ = ["Record", "hunt", "random_filter"]

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati")


@dataclass
class Record:
    """What a run found for one engine.

    A filter is *refused* if no part of it ruled a file out because engines differ in what the parts mean. It is *left*
    to the engine if the only reason is that it names partition columns, by which the engine prunes directories.
    """

    filters: int = 0
    rows: int = 0
    refused: int = 0
    left: int = 0
    partly: int = 0
    skipping: int = 0
    files: int = 0
    skipped: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        share = f"{self.skipped / max(self.files, 1):.0%} of files skipped"
        return (
            f"{self.filters} filters, {len(self.lost)} lost rows, {self.skipping / max(self.filters, 1):.0%} skipped a "
            f"file, {share}, {self.refused / max(self.filters, 1):.0%} refused whole, "
            f"{self.left / max(self.filters, 1):.0%} left to the engine, "
            f"{self.partly / max(self.filters, 1):.0%} in part, {sum(self.errors.values())} the engine itself refused"
        )


def _constant(column: str, files: int, chance: random.Random) -> Any:
    value = values_near(column, chance.choice((chance.randint(-files, files), chance.randint(0, files))), chance)
    if column in ("i", "l", "t", "f", "x", "d", "e", "pn") and chance.random() < 0.3:
        return Decimal(chance.randint(-files * 100, files * 100)).scaleb(-chance.choice((0, 1, 2)))
    if isinstance(value, float):
        return Decimal(repr(value)) if value == value and abs(value) < 1e9 and abs(value) > 1e-9 else 0
    if isinstance(value, str):
        return value.replace("'", "")
    if column == "ts" and chance.random() < 0.4:
        return value.replace(tzinfo=None)
    return value


def _leaf(columns: list[str], files: int, chance: random.Random) -> Filter:
    column = chance.choice(columns)
    kind = chance.random()
    if column == "b":
        return chance.choice([("flag", "b"), ("cmp", chance.choice(("=", "<>")), "b", chance.random() < 0.5)])
    if kind < 0.04:
        return (chance.choice(("null", "present")), column)
    if column == "s" and kind < 0.4:
        pattern = chance.choice(("a%", "%b", "city-1%", "city-_1", "%-0%", "Z_rich", "a_b", "%"))
        return ("like", "s", pattern)
    if kind < 0.6:
        return ("cmp", chance.choice(("=", "<>", "<", "<=", ">", ">=")), column, _constant(column, files, chance))
    if kind < 0.8 and column != "pm":
        low, high = (_constant(column, files, chance) for _ in range(2))
        if isinstance(low, datetime.datetime) and isinstance(high, datetime.datetime):
            high = high.replace(tzinfo=low.tzinfo)
        return ("between", column, *sorted((low, high)))
    values = [_constant(column, files, chance) for _ in range(chance.randint(1, 4))]
    if column == "pm":  # a list of one kind, which every engine takes
        values = [value for value in values if isinstance(value, type(values[0]))]
    if column == "ts":
        values = [value.replace(tzinfo=datetime.timezone.utc) for value in values]
    return ("in", column, values)


def random_filter(columns: list[str], files: int, chance: random.Random, depth: int = 0) -> Filter:
    """A filter of a few comparisons."""
    kind = chance.random() + depth * 0.15
    if kind < 0.3:
        return ("and", *(random_filter(columns, files, chance, depth + 1) for _ in range(2)))
    if kind < 0.5:
        return ("or", *(random_filter(columns, files, chance, depth + 1) for _ in range(2)))
    if kind < 0.65:
        return ("not", random_filter(columns, files, chance, depth + 1))
    return _leaf(columns, files, chance)


def hunt(
    folder: Path,
    store: Any,
    seed: int,
    *,
    filters: int = 10**9,
    seconds: float = 1e9,
    int96: bool = False,
    partitions: Collection[str] = (),
) -> dict[str, Record]:
    """Compare survivors with all files for each engine.

    Parameters
    ----------
    filters, seconds
        Where to end.
    int96
        Whether the timestamps of the files are.
    partitions
        The columns that the directories name.
    """
    chance = random.Random(seed)
    every = sorted(str(path) for path in folder.rglob("*.parquet"))
    columns = [name for name in (*SCHEMA.names, *partitions) if name != "id" and not (int96 and name == "n")]
    peers: list[Peer] = [type(zone, int96, bool(partitions)) for type in PEERS for zone in ZONES]
    records = {type.name: Record() for type in PEERS}
    end = time.monotonic() + seconds
    for _ in range(filters):
        if time.monotonic() > end:
            break
        filter = random_filter(columns, len(every), chance)
        text = spark_text(filter)
        found = esk.files(folder, text, store=store)
        assert not found.report.failed, found.report
        kept = list(found)
        for one in (chance.choice([peer for peer in peers if peer.name == name]) for name in records):
            record = records[one.name]
            try:
                wanted = one.ids(every, filter)
            except Exception as error:
                record.errors[f"{type(error).__name__}: {error}"[:120]] += 1
                continue
            record.filters += 1
            record.files += len(every)
            record.skipped += found.report.objects_skipped
            record.skipping += found.report.objects_skipped > 0
            if found.report.refused and not found.report.indexes:
                if all("partition column" in reason for _, reason in found.report.refused):
                    record.left += 1
                else:
                    record.refused += 1
            record.partly += bool(found.report.refused)
            record.rows += len(wanted)
            try:
                got = one.ids(kept, filter)
            except Exception as error:
                record.lost.append(f"seed {seed}, zone {one.zone}: {text}: {error}; all files raise no error")
                continue
            if got != wanted:
                lost = sorted({*wanted} ^ {*got})[:5]
                record.lost.append(f"seed {seed}, zone {one.zone}: {text}: rows {lost}; {found.report.clause}")
    return records


def main() -> None:
    """Print the record of one long run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--filters", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--store", choices=("parquet", "elasticsearch"), default="parquet")
    parser.add_argument("--lake", type=int, choices=range(6), help="only this one of the six; by default all")
    given = parser.parse_args()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from pyspark.sql import SparkSession

    from tests.elasticsearch_node import shared_url
    from tests.engines.lake import indexed, write_lake

    total: dict[str, Record] = {}
    with tempfile.TemporaryDirectory() as base:
        store = shared_url() if given.store == "elasticsearch" else f"file:{base}/store"
        settings = {"spark.es_skipping.store.url": store, "spark.es_skipping.store.timeout": "30s"}
        spark = esk.configure(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        for key, value in settings.items():
            spark.conf.set(key, value)
        lakes: list[dict[str, Any]] = [
            {"int96": number % 2 == 1, "partitions": partitions}
            for number, partitions in enumerate(((), (), (), (), PARTITIONS[:3], PARTITIONS))
        ]
        chosen = [(number, lake) for number, lake in enumerate(lakes) if given.lake in (None, number)]
        for number, lake in chosen:
            write_lake(Path(base) / f"lake-{number}", 24, given.seed * 100 + number, **lake)
            indexed(spark, Path(base) / f"lake-{number}", ranges_only=number in (2, 3))
        spark.stop()
        for number, lake in chosen:
            filters = -(-given.filters // len(lakes))
            part = hunt(Path(base) / f"lake-{number}", settings, given.seed + number, filters=filters, **lake)
            for name, record in part.items():
                if name not in total:
                    total[name] = record
                    continue
                so_far = total[name]
                for key in ("filters", "rows", "refused", "left", "partly", "skipping", "files", "skipped"):
                    setattr(so_far, key, getattr(so_far, key) + getattr(record, key))
                so_far.errors += record.errors
                so_far.lost += record.lost
            print(*(f"{name}: {record}" for name, record in total.items()), sep="\n", flush=True)
    for name, record in total.items():
        print(name, *record.errors.most_common(5), *record.lost[:20], sep="\n")
    raise SystemExit(any(record.lost for record in total.values()))


if __name__ == "__main__":
    main()
