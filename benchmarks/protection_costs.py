"""What protection costs, as ratios in one run: build, stored bytes, look-ups.

Run it with a server that may be written to::

    python -m benchmarks.protection_costs --store http://localhost:9200 --objects 100000

The same metadata, an interval of a timestamp and five cities of a thousand for each object, is written in clear,
hashed (the cities), sealed, and in clear with ``verify=mac``, to Elasticsearch and to a Parquet store; without
``--store`` only to the latter. Questions go to
all variants in turn, each question once, so that whatever else the machine does slows all of them alike. Ratios are of
medians. CPU is this process's, without the server's.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.pages import stamp
from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import new_protection
from es_skipping.stores.protection.store import ProtectedStore

_TIME: Final = IndexDefinition("minmax(ts)", "MinMax", ("ts",), "intervals", parse_type("timestamp"))
_CITY: Final = IndexDefinition("valuelist(city)", "ValueList", ("city",), "values", parse_type("string"))
_KEY: Final = "env:ES_SKIPPING_BENCH_KEY"
_PREFIX: Final = "es-skipping-bench-protection"
_ROUNDS: Final = 60


@dataclass
class _Variant:
    """One store with the metadata protected in one way."""

    store: str
    mode: str
    opened: MetadataStore
    size: Callable[[], int]
    folder: Path | None = None
    entry: DatasetEntry | None = None
    build_cpu: float = 0.0
    rewritten: float | None = None
    """Bytes that a refresh writes for each object that it refreshes."""
    times: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        if self.mode == "sealed":
            return tuple(protected(one, new_protection("sealed", _KEY)) for one in (_TIME, _CITY))
        return (_TIME, protected(_CITY, new_protection("hashed", _KEY)) if self.mode == "hashed" else _CITY)

    def build(self, objects: list[ObjectMetadata]) -> None:
        definition = DatasetDefinition("bench", ("s3a://lake/bench",), "parquet", self.indexes())
        begun = time.process_time()
        with self.opened.change(definition, fresh=True) as change:
            change.put(objects)
            self.entry = change.publish()
        self.build_cpu = time.process_time() - begun

    def refresh(self, objects: list[ObjectMetadata]) -> None:
        """One object of a hundred was written again."""
        assert self.entry is not None
        changed = [replace(one, id=replace(one.id, mtime=one.id.mtime + 1)) for one in objects[::100]]
        before = set() if self.folder is None else set(self.folder.rglob("*"))
        with self.opened.change(self.entry.definition) as change:
            change.put(changed)
            change.publish()
        if self.folder is not None:
            written = [file for file in set(self.folder.rglob("*")) - before if file.is_file()]
            self.rewritten = sum(file.stat().st_size for file in written) / len(changed)

    def ask(self, name: str, clause: Clause) -> int:
        assert self.entry is not None
        begun, cpu = time.perf_counter(), time.process_time()
        skipped = self.opened.lookup(self.entry, clause).skipped
        self.cpu.setdefault(name, []).append(time.process_time() - cpu)
        self.times.setdefault(name, []).append(time.perf_counter() - begun)
        return skipped


def _objects(count: int) -> Iterator[ObjectMetadata]:
    for n in range(count):
        yield ObjectMetadata(
            ObjectId(f"s3a://lake/bench/day={n // 1000}/part-{n:07}.parquet", 1 << 27, 1_700_000_000_000 + n),
            1_000_000,
            {
                _TIME.id: Intervals(((n * 1000, n * 1000 + 2000),), 0),
                _CITY.id: Values(frozenset(f"city-{(n * k) % 1000}" for k in (1, 3, 7, 11, 13)), 0),
            },
        )


def _questions(count: int) -> Iterator[tuple[str, Clause]]:
    for number in range(_ROUNDS + 1):
        yield "city = x", Ask(_CITY.id, AnyOf((f"city-{number * 16 % 1000}",)))
        low = number * 997 % count * 1000
        yield "ts in a range", Ask(_TIME.id, Overlaps((Range(low, low + count * 10),)))


def _of_folder(folder: Path) -> Callable[[], int]:
    return lambda: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _of_server(client: Any, prefix: str) -> Callable[[], int]:
    def size() -> int:
        client.indices.refresh(index=f"{prefix}-*")
        client.indices.forcemerge(index=f"{prefix}-*", max_num_segments=1)
        found = client.indices.stats(index=f"{prefix}-*", metric="store").body
        return int(found["_all"]["primaries"]["store"]["size_in_bytes"])

    return size


def _variants(url: str | None, folder: Path) -> Iterator[_Variant]:
    settings = Settings({"spark.es_skipping.store.timeout": "60s"})
    for mode in ("plain", "hashed", "sealed", "verify=mac"):
        verify = _KEY if mode == "verify=mac" else None
        if url is not None:
            prefix = f"{_PREFIX}-{mode.partition('=')[0]}"
            server = ElasticsearchStore(url, settings, prefix=prefix)
            size = _of_server(server._cluster.builder, prefix)
            yield _Variant("Elasticsearch", mode, ProtectedStore(server, verify), size)
        files = ParquetStore(str(folder / mode), cache_bytes=2 << 30)
        yield _Variant("Parquet", mode, ProtectedStore(files, verify), _of_folder(folder / mode), folder / mode)


def _row(one: _Variant, base: _Variant, parquet: _Variant, sizes: Mapping[tuple[str, str], int], count: int) -> str:
    assert one.entry is not None
    cells = [
        one.store,
        one.mode,
        f"{1e6 * one.build_cpu / count:.0f} µs ({one.build_cpu / base.build_cpu:.2f})",
        f"{sizes[one.store, one.mode] / count:.0f} ({sizes[one.store, one.mode] / sizes[one.store, 'plain']:.2f})",
    ]
    cells.append("" if one.rewritten is None else f"{one.rewritten:.0f}")
    for name in one.times:
        found, of_base, of_parquet = (statistics.median(each.times[name][1:]) for each in (one, base, parquet))
        cpu = statistics.median(one.cpu[name][1:])
        cells.append(
            f"{1000 * found:.1f} ms ({found / of_base:.2f}; {found / of_parquet:.2f}), CPU {1000 * cpu:.1f} ms"
        )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table for ``docs/benchmarks/protection.md``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of Elasticsearch; without it only Parquet stores are measured")
    parser.add_argument("--objects", type=int, default=100_000)
    given = parser.parse_args()
    os.environ[_KEY.removeprefix("env:")] = secrets.token_hex(32)
    objects = list(_objects(given.objects))
    with tempfile.TemporaryDirectory() as folder:
        variants = list(_variants(given.store, Path(folder)))
        try:
            for one in variants:
                one.build(objects[:1_000])  # imports and the first connection are not what is measured
            for one in variants:
                one.build(objects)
            for name, clause in _questions(given.objects):
                found = {one.ask(name, clause) for one in variants}
                assert len(found) == 1, (name, clause, found)
            sizes = {(one.store, one.mode): one.size() for one in variants}
            for one in variants:
                one.refresh(objects)
            parquet = next(one for one in variants if (one.store, one.mode) == ("Parquet", "plain"))
            names = list(variants[0].times)
            print(f"{given.objects:,} objects, {_ROUNDS} questions of each kind\n")
            head = ["store", "mode", "build, CPU an object", "bytes an object", "refresh, bytes an object", *names]
            print(f"| {' | '.join(head)} |")
            print(f"|---|---|---:|---:|---:|{'---:|' * len(names)}")
            for one in variants:
                base = next(each for each in variants if (each.store, each.mode) == (one.store, "plain"))
                print(_row(one, base, parquet, sizes, given.objects), flush=True)
        finally:
            for one in variants:
                one.opened.drop("bench")
                one.opened.close()
    print(f"\n{stamp()}")


if __name__ == "__main__":
    main()
