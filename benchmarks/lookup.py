"""How long a look-up takes, by number of objects, kind of clause and share of survivors, in each store.

Run it with a server that may be written to; ``--page`` puts the figures into docs/benchmarks/million.md::

    python -m benchmarks.lookup --store http://localhost:9200 --objects 10000,100000,1000000 --page
    python -m benchmarks.lookup --objects 10000,100000,1000000 --page

Metadata of invented objects (four MinMax, a ValueList of ten values, a Prefix, a GeoBox; paths as a lake has them) is
put straight into the store. The clock runs from a look-up's call to the reply that the shim can apply, encoded. *First*
is the first look-up of its kind, *p50* and *p99* are of others of that kind, *again* is of a clause asked before.
*Opened* is the first look-up of a reader that knows nothing yet. *Received* is what the server sent, *reply* what the
shim is handed. The last two rows are the first look-up after a thousandth more objects were added, by the reader of the
other rows and by one that knows nothing yet, with the processor time of the client and an Elasticsearch.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from benchmarks.pages import fill, recorded, write_chart
from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId
from es_skipping.catalog import ObjectMetadata as Object
from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, Meets, Overlaps, Range
from es_skipping.layout.chart import line_chart
from es_skipping.lookup import reply
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.registry import open_store, store_type

SHARES: Final = (0.0001, 0.001, 0.01, 0.5, 0.99)
CITIES: Final = 1_000
CITY_LISTS: Final = [Values(frozenset(f"city {(n + k * 97) % CITIES:04}" for k in range(10)), 0) for n in range(CITIES)]
HOSTS: Final = [Values(frozenset({f"h{n:07}"}), 0) for n in range(10_000)]

INDEXES: Final = (
    *(
        IndexDefinition(f"minmax({name})", "MinMax", (name,), "intervals", parse_type(type))
        for name, type in (("ts", "timestamp"), ("id", "bigint"), ("price", "double"), ("name", "string"))
    ),
    IndexDefinition("valuelist(city)", "ValueList", ("city",), "values", parse_type("string")),
    IndexDefinition("prefix(host,length=8)", "Prefix", ("host",), "values", parse_type("string")),
    IndexDefinition("geobox(lat,lon)", "GeoBox", ("lat", "lon"), "boxes", parse_type("double")),
)


def definition(count: int) -> DatasetDefinition:
    return DatasetDefinition(f"bench-{count}", (f"s3a://lake/warehouse/bench_{count}",), "parquet", INDEXES)


def objects(count: int) -> Iterator[Object]:
    """``ts`` and ``id`` ascend with the paths, as in a lake that is written by day; the others are scattered."""
    dice = random.Random(count)
    scattered = array("q", range(count))  # not a list, through which the collector would look again and again
    dice.shuffle(scattered)
    for n, mixed in enumerate(scattered):
        path = (
            f"s3a://lake/warehouse/bench_{count}/day=2026-{1 + n * 12 // count:02}-{1 + n % 28:02}/"
            f"part-{n:07}-{dice.getrandbits(64):016x}{dice.getrandbits(64):016x}.c000.snappy.parquet"
        )
        ts, price = 1_760_000_000_000_000 + n * 1_000_000, 1000.0 * mixed / count
        lat, lon = 180.0 * mixed / count - 90, dice.uniform(-180, 179)
        yield Object(
            ObjectId(path, 100_000_000 + mixed, 1_760_000_000_000 + n),
            1_000_000,
            {
                "minmax(ts)": Intervals(((ts, ts + 900_000),), 0),
                "minmax(id)": Intervals(((n * 1000, n * 1000 + 999),), 0),
                "minmax(price)": Intervals(((price, price + 500.0 / count),), 0, 0),
                "minmax(name)": Intervals(((f"n{mixed:09}", f"n{mixed:09}z"),), 0),
                "valuelist(city)": CITY_LISTS[mixed % CITIES],
                "prefix(host,length=8)": HOSTS[mixed % len(HOSTS)],
                "geobox(lat,lon)": Boxes((((lat, lat + 90.0 / count), (lon, lon + 0.5)),)),
            },
        )


def clauses(kind: str, count: int, share: float, dice: random.Random) -> Clause:
    """A clause of this kind that about this share of the objects survives."""
    start = dice.uniform(0, 1 - share)
    survivors = max(1, int(share * count))
    first = int(start * count)
    if kind == "range, clustered":
        low = 1_760_000_000_000_000 + first * 1_000_000
        return Ask("minmax(ts)", Overlaps((Range(low, low + (survivors - 1) * 1_000_000),)))
    if kind == "range, scattered":
        low_price = 1000.0 * first / count
        return Ask("minmax(price)", Overlaps((Range(low_price, 1000.0 * (first + survivors - 1) / count),)))
    if kind == "string range":
        return Ask("minmax(name)", Overlaps((Range(f"n{first:09}", f"n{first + survivors - 1:09}"),)))
    if kind == "value list":
        wanted = max(1, round(share * CITIES / 10)) if share < 0.2 else round(CITIES * (1 - (1 - share) ** 0.1))
        return Ask("valuelist(city)", AnyOf(tuple(f"city {(int(start * 900) + n) % CITIES:04}" for n in range(wanted))))
    if kind == "prefix":
        wanted = max(1, round(share * 10_000))
        return Ask("prefix(host,length=8)", AnyOf(tuple(f"h{int(start * 10_000) + n:07}" for n in range(wanted))))
    low_lat = 180.0 * first / count - 90
    high_lat = 180.0 * (first + survivors - 1) / count - 90
    return Ask("geobox(lat,lon)", Meets((Range(low_lat, high_lat), Range(-180.0, 180.0))))


KINDS: Final = ("range, clustered", "range, scattered", "string range", "value list", "prefix", "box")


def load(store: MetadataStore, count: int) -> float:
    """Put the metadata there, unless it is; returns the seconds that took."""
    found = store.dataset(definition(count).id)
    if found is not None and found.objects == count:
        return 0.0
    begun = time.perf_counter()
    with store.change(definition(count), fresh=True) as change:
        change.put(objects(count))
        change.publish()
    return time.perf_counter() - begun


def reader_of(url: str, settings: Settings) -> MetadataStore:
    """A store that knows nothing yet: `open_store` gives the one that is open."""
    return store_type(url).open(url, settings, None)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = call()
    return 1000 * (time.perf_counter() - begun), found


class Traffic:
    """Bytes that an Elasticsearch sends to a store; none for files."""

    def __init__(self, store: MetadataStore) -> None:
        self.received = 0
        for node in store._cluster.reader.transport.node_pool.all() if isinstance(store, ElasticsearchStore) else ():
            node.perform_request = self._counted(node.perform_request)  # type: ignore[method-assign]

    def _counted(self, perform: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            answer = perform(*arguments, **named)
            self.received += len(answer.body)
            return answer

        return counted


def measure(url: str, settings: Settings, count: int, repeat: int) -> Iterator[dict[str, Any]]:
    store = reader_of(url, settings)
    traffic = Traffic(store)
    entry = store.dataset(definition(count).id)
    assert entry is not None
    dice = random.Random(7)
    opened, _ = timed(lambda: store.lookup(entry, clauses(KINDS[0], count, SHARES[0], dice), timeout=60))
    yield {"objects": count, "opened": round(opened, 1), "received": traffic.received}
    for kind in KINDS:
        for share in SHARES:
            found = once(store, traffic, entry, kind, share, repeat, dice)
            yield {"objects": count, "kind": kind, "share": share, **found}
    more = [
        replace(one, id=replace(one.id, path=f"{one.id.path}.more")) for one in islice(objects(count), count // 1000)
    ]
    with open_store(url, settings).change(definition(count)) as change:
        change.put(more)
        change.publish()
    for name, reader in (("after an append", store), ("opened then", reader_of(url, settings))):
        traffic = Traffic(reader)
        clause, before = clauses(KINDS[0], count, SHARES[1], dice), cpu(reader)
        entry = reader.dataset(definition(count).id)
        assert entry is not None
        spent, _ = timed(lambda reader=reader, entry=entry, clause=clause: reader.lookup(entry, clause, timeout=60))
        worked = [round(1000 * (now - then)) for now, then in zip(cpu(reader), before, strict=True)]
        name += f": {worked[0]} and {worked[1]} ms of CPU"
        yield {"objects": count, "name": name, "opened": round(spent, 1), "received": traffic.received}
    with store.change(definition(count)) as change:
        change.remove(one.id for one in more)
        change.publish()


def cpu(store: MetadataStore) -> tuple[float, float]:
    """Seconds of processor time of this process and of the servers; none of files."""
    servers = 0
    if isinstance(store, ElasticsearchStore):
        nodes = store._cluster.reader.nodes.stats(metric="process")["nodes"].values()
        servers = sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)
    return time.process_time(), servers / 1000


def once(
    store: MetadataStore,
    traffic: Traffic,
    entry: DatasetEntry,
    kind: str,
    share: float,
    repeat: int,
    dice: random.Random,
) -> dict[str, Any]:
    count = entry.objects

    def look_up(clause: Clause) -> tuple[bytes, int]:
        answer = store.lookup(entry, clause, timeout=60)
        return reply.body([[answer]]), answer.skipped

    first, _ = timed(lambda: look_up(clauses(kind, count, share, dice)))
    rounds = repeat if share < 0.1 else max(3, repeat // 10)
    times, again, sizes, kept, received = [], [], [], [], []
    for _ in range(rounds):
        clause = clauses(kind, count, share, dice)
        before = traffic.received
        ms, (data, skipped) = timed(lambda clause=clause: look_up(clause))  # type: ignore[misc]
        times.append(ms)
        received.append(traffic.received - before)
        sizes.append(len(data))
        kept.append(count - skipped)
        again.append(timed(lambda clause=clause: look_up(clause))[0])  # type: ignore[misc]
    return {
        "survivors": int(statistics.median(kept)),
        "first": round(first, 1),
        "p50": round(statistics.median(times), 2),
        "p99": round(sorted(times)[min(len(times) - 1, int(0.99 * len(times)))], 2),
        "again": round(statistics.median(again), 2),
        "received": int(statistics.median(received)),
        "reply_bytes": int(statistics.median(sizes)),
        "client_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


HEAD: Final = (
    "| objects | clause | survivors | first ms | p50 ms | p99 ms | again ms | received | reply bytes | client MB |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def line(row: dict[str, Any]) -> str:
    if "opened" in row:
        name = row.get("name", "opened")
        return f"| {row['objects']:,} | *{name}* | | {row['opened']} | | | | {row['received']:,} | | |"
    return (
        f"| {row['objects']:,} | {row['kind']} | {row['survivors']:,} | {row['first']} | {row['p50']} | {row['p99']} "
        f"| {row['again']} | {row['received']:,} | {row['reply_bytes']:,} | {row['client_mb']:,} |"
    )


def chart(results: dict[str, list[dict[str, Any]]]) -> str:
    """The median over the kinds of clauses of p50 and p99, where a hundred objects survive."""

    def points(rows: list[dict[str, Any]], figure: str) -> list[tuple[float, float]]:
        by_count: dict[int, list[float]] = {}
        for row in rows:
            if row.get("share", 0) * row["objects"] == 100:
                by_count.setdefault(row["objects"], []).append(row[figure])
        return [(count, statistics.median(found)) for count, found in sorted(by_count.items())]

    return line_chart(
        {f"{store}, {figure}": points(rows, figure) for store, rows in results.items() for figure in ("p50", "p99")},
        title="A look-up that 100 objects survive (median and 99th percentile)",
        x_label="objects of the dataset",
        y_label="milliseconds",
        powers=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store, where datasets bench-... are written; default: a folder")
    parser.add_argument("--objects", default="10000,100000", help="numbers of objects, separated by commas")
    parser.add_argument("--repeat", type=int, default=100, help="look-ups for each kind and share")
    parser.add_argument("--page", action="store_true", help="put the figures into docs/benchmarks/million.md")
    parser.add_argument("--drop", action="store_true", help="drop the datasets at the end")
    given = parser.parse_args()
    settings = Settings({"spark.es_skipping.store.timeout": "60s"})
    with tempfile.TemporaryDirectory() as folder:
        run(given, given.store or folder, settings)


def run(given: argparse.Namespace, url: str, settings: Settings) -> None:
    store = open_store(url, settings)
    results: list[dict[str, Any]] = []
    counts = [int(text) for text in given.objects.split(",")]
    for count in counts:
        seconds = load(store, count)
        if seconds:
            print(f"{count:,} objects loaded in {seconds:.0f} s: {count / seconds:,.0f} a second", flush=True)
        print(HEAD)
        for row in measure(url, settings, count, given.repeat):
            results.append(row)
            print(line(row), flush=True)
    if given.page:
        kind = "Elasticsearch" if given.store else "Parquet"
        figures = recorded("lookup", kind, results)
        fill("lookup", "\n\n".join("\n".join([f"**{name}**\n", HEAD, *map(line, figures[name])]) for name in figures))
        write_chart("million_lookup", chart(figures))
    if given.drop:
        for count in counts:
            store.drop(definition(count).id)


if __name__ == "__main__":
    main()
