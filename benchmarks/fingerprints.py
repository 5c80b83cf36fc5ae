"""What fingerprints cost: bits a distinct value in each store, false positives, and the time of a look-up.

Run: ``python -m benchmarks.fingerprints [--objects 10000] [--url http://localhost:9200]``

Two datasets of strings, as `Hybrid` with threshold 500 at 1 % collects them: every object with 1,000 distinct values,
and four tenths as many objects with 250 to 4,000. In Elasticsearch the bytes are those of ``_disk_usage`` after a force
merge: of the field that is asked (``prints``), and of all, the packed form in ``_source`` included. Merged only once
the server lets go of the second copy it keeps for recovery, as it does by itself with time. Without ``--url`` a
node is started, as the tests do. Written to ``docs/benchmarks/fingerprints.json``.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from elasticsearch import Elasticsearch

from benchmarks.pages import stamp
from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Fingerprints, Metadata, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.indexes.hybrid import Hybrid
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore
from tests.elasticsearch_node import shared_url

STRING = parse_type("string")
INDEX = IndexDefinition("hybrid(s)", "Hybrid", ("s",), "fingerprints", STRING, column_types=(STRING,))
RESULT = Path(__file__).parents[1] / "docs" / "benchmarks" / "fingerprints.json"
PREFIX = "es-skipping-benchmark"


def collected(values: list[str]) -> Metadata:
    collector = Hybrid("s", threshold=500).collector([STRING])
    metadata = collector.finish(collector.partial([pa.array(values)]))
    assert metadata is not None
    return metadata


def objects(sizes: list[int]) -> Iterator[ObjectMetadata]:
    for n, size in enumerate(sizes):
        values = [f"{n:x}/{k * 2_654_435_761 % (1 << 32):08x}" for k in range(size)]
        id = ObjectId(f"s3a://lake/events/part-{n:05}.parquet", 1 << 27, 1_700_000_000_000)
        yield ObjectMetadata(id, size, {INDEX.id: collected(values)})


def measured(store: MetadataStore, name: str, sizes: list[int]) -> dict[str, Any]:
    """Build the dataset, ask for values that no object has, and for one that one has."""
    fingerprinted = 0

    def counted() -> Iterator[ObjectMetadata]:
        nonlocal fingerprinted
        for one in objects(sizes):
            fingerprinted += isinstance(one.metadata[INDEX.id], Fingerprints)
            yield one

    definition = DatasetDefinition(f"fingerprints-{name}", ("s3a://lake/events",), "parquet", (INDEX,))
    started = time.perf_counter()
    with store.change(definition, fresh=True) as change:
        change.put(counted())
        entry = change.publish()
    built = time.perf_counter() - started
    times, kept = [], 0
    asked = 60
    for n in range(asked):
        started = time.perf_counter()
        answer = store.lookup(entry, Ask(INDEX.id, AnyOf((f"nobody has {n}",))))
        times.append(1000 * (time.perf_counter() - started))
        kept += len(sizes) - answer.skipped
    present = store.lookup(entry, Ask(INDEX.id, AnyOf((f"{7:x}/{0:08x}",))))
    assert present.skipped < len(sizes), "the object that holds the value is skipped"
    return {
        "objects": len(sizes),
        "distinct values": sum(sizes),
        "objects with fingerprints": fingerprinted,
        "build s": round(built, 1),
        "false positives %": round(100 * kept / (asked * max(1, fingerprinted)), 3),
        "look-up ms, first": round(times[0], 1),
        "look-up ms, median": round(statistics.median(times[1:]), 1),
    }


def disk_usage(store: ElasticsearchStore, name: str, values: int) -> dict[str, float]:
    client = store._cluster.builder.options(request_timeout=600)
    index = store._cluster.names.objects(f"fingerprints-{name}")
    await_retention(client, index)
    client.indices.flush(index=index, force=True, wait_if_ongoing=True)
    client.indices.forcemerge(index=index, max_num_segments=1)
    client.indices.flush(index=index, force=True, wait_if_ongoing=True)
    usage = client.indices.disk_usage(index=index, run_expensive_tasks=True, flush=True).body
    (found,) = (body for name, body in usage.items() if not name.startswith("_"))
    asked = next(field for name, field in found["fields"].items() if name.endswith(".prints"))
    bits = {
        "inverted index, bits a value": asked["inverted_index"]["total_in_bytes"],
        "left for recovery, bits a value": found["fields"].get("_recovery_source", {}).get("total_in_bytes", 0),
        "in all, bits a value": found["store_size_in_bytes"],
    }
    return {what: round(8 * size / values, 2) for what, size in bits.items()}


def await_retention(client: Elasticsearch, index: str) -> None:
    """Wait until no copy of the shard may still ask for what was written.

    Until then the server keeps each document a second time, whole, for recovery, and a merge carries that on. It
    notices every half minute (``index.soft_deletes.retention_lease.sync_interval``) how far its copies are.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        stats = client.indices.stats(index=index, level="shards").body["indices"]
        ((shard,),) = (body["shards"].values() for body in stats.values())
        leases = shard[0]["retention_leases"]["leases"]
        if all(lease["retaining_seq_no"] > shard[0]["seq_no"]["global_checkpoint"] for lease in leases):
            return
        time.sleep(2)
    raise TimeoutError(f"after two minutes {index} still retains its history: {leases}")


def parquet_bits(folder: str, name: str, values: int) -> dict[str, float]:
    total = 0
    for file in Path(folder).glob(f"fingerprints-{name}/segments/*.parquet"):
        footer = pq.read_metadata(file)
        for group in range(footer.num_row_groups):
            chunks = [footer.row_group(group).column(at) for at in range(footer.num_columns)]
            total += sum(chunk.total_compressed_size for chunk in chunks if "." in chunk.path_in_schema)
    return {"in all, bits a value": round(8 * total / values, 2)}


def run(url: str, count: int) -> dict[str, Any]:
    rng = random.Random(5)
    mixed = [rng.randint(250, 4000) for _ in range(max(1, count * 4 // 10))]
    report: dict[str, Any] = {}
    settings = Settings({"spark.es_skipping.store.timeout": "60s"})
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in (("equal", [1000] * count), ("mixed", mixed)):
            parquet = ParquetStore(folder, cache_bytes=2 << 30)
            found = measured(parquet, name, sizes)
            report[f"{name}, Parquet"] = found | parquet_bits(folder, name, sum(sizes))
            server = ElasticsearchStore(url, settings, prefix=PREFIX)
            found = measured(server, name, sizes)
            report[f"{name}, Elasticsearch"] = found | disk_usage(server, name, sum(sizes))
            server.drop(f"fingerprints-{name}")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--url")
    given = parser.parse_args()
    report = run(given.url or shared_url(), given.objects)
    assert isinstance(collected(["a"]), Values)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    command = f"python -m benchmarks.fingerprints --objects {given.objects}"
    RESULT.write_text(json.dumps({"command": command, **report}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
    print(stamp())
