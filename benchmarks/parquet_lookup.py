"""Time of look-ups in the Parquet store, cold and warm.

Run: ``python -m benchmarks.parquet_lookup 10000 100000 1000000``
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.pages import stamp
from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.clauses.questions import AnyOf, Meets, OtherThan, Overlaps, Range, TextMatch
from es_skipping.predicates.types import parse_type
from es_skipping.stores.parquet.store import ParquetStore

TIME = IndexDefinition("minmax(ts)", "MinMax", ("ts",), "intervals", parse_type("timestamp"))
NAME = IndexDefinition("minmax(name)", "MinMax", ("name",), "intervals", parse_type("string"))
CITY = IndexDefinition("valuelist(city)", "ValueList", ("city",), "values", parse_type("string"))
PLACE = IndexDefinition("geobox(lat,lon)", "GeoBox", ("lat", "lon"), "boxes", parse_type("double"))

QUESTIONS: dict[str, Clause] = {
    "range of a timestamp": Ask(TIME.id, Overlaps((Range(5_000_000, 6_000_000),))),
    "range of a string": Ask(NAME.id, Overlaps((Range("name-0005", "name-0006"),))),
    "IN of 3 strings": Ask(CITY.id, AnyOf(("city-1", "city-500", "city-999"))),
    "IN of 1,000 timestamps": Ask(TIME.id, AnyOf(tuple(range(0, 100_000_000, 100_000)))),
    "<> of a string": Ask(CITY.id, OtherThan(("city-1",))),
    "LIKE 'a%z'": Ask(CITY.id, TextMatch("like", "a%z")),
    "bounding box": Ask(PLACE.id, Meets((Range(10.0, 11.0), Range(20.0, 21.0)))),
    "range AND IN AND box": Conjunction(
        (
            Ask(TIME.id, Overlaps((Range(5_000_000, None),))),
            Ask(CITY.id, AnyOf(("city-1", "city-500"))),
            Ask(PLACE.id, Meets((Range(10.0, 60.0), Range(20.0, 100.0)))),
        )
    ),
}


def objects(count: int) -> Iterator[ObjectMetadata]:
    """Objects with one interval of a timestamp and of a string, five cities of a thousand, and two boxes."""
    for n in range(count):
        latitude, longitude = (n * 7919) % 18_000 / 100 - 90, (n * 104_729) % 36_000 / 100 - 180
        box = ((latitude, latitude + 0.5), (longitude, longitude + 0.5))
        yield ObjectMetadata(
            ObjectId(f"s3a://lake/events/day={n // 1000}/part-{n:07}.parquet", 1 << 27, 1_700_000_000_000 + n),
            1_000_000,
            {
                TIME.id: Intervals(((n * 1000, n * 1000 + 1500),), 0),
                NAME.id: Intervals(((f"name-{n:07}", f"name-{n + 3:07}"),), 0),
                CITY.id: Values(frozenset(f"city-{(n * k) % 1000}" for k in (1, 3, 7, 11, 13)), 0),
                PLACE.id: Boxes((box, ((0.0, 1.0), (0.0, 1.0)))),
            },
        )


def measure(count: int) -> None:
    definition = DatasetDefinition("events", ("s3a://lake/events",), "parquet", (TIME, NAME, CITY, PLACE))
    with tempfile.TemporaryDirectory() as directory:
        store = ParquetStore(directory, cache_bytes=2 << 30)
        started = time.perf_counter()
        with store.change(definition) as change:
            change.put(objects(count))
            entry = change.publish()
        built = time.perf_counter() - started
        size = sum(entry.metadata_bytes.values())
        print(f"\n{count:,} objects: written in {built:.1f} s, {size / count:.0f} bytes of metadata an object\n")
        print("| question | skipped | cold ms | warm ms |\n|---|---:|---:|---:|")
        for name, clause in QUESTIONS.items():
            reader = ParquetStore(directory, cache_bytes=2 << 30)
            times = []
            for _ in range(6):
                started = time.perf_counter()
                answer = reader.lookup(entry, clause)
                times.append(1000 * (time.perf_counter() - started))
            print(f"| {name} | {answer.skipped:,} | {times[0]:.1f} | {statistics.median(times[1:]):.1f} |")


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["10000", "100000"]:
        measure(int(argument))
    print(stamp())
