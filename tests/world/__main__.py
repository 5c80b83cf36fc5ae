"""The whole world, or a part of it.

    python -m tests.world                                     all, on both stores
    python -m tests.world --sample 2000 --seed 7 doubles      some predicates of some domains

The first run lets Spark plan every predicate, which takes most of its time; what Spark says is kept below
``build/world`` for the next.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession

from es_skipping.stores.parquet.store import ParquetStore
from tests import jvm
from tests.elasticsearch_node import shared_url
from tests.stores.elasticsearch.conftest import make_store
from tests.world.domains import DOMAINS, Domain
from tests.world.evaluators import Evaluator, Plain, Stored, StoredInElasticsearch
from tests.world.figures import Figures
from tests.world.judge import Judgement, judge
from tests.world.predicates import predicates
from tests.world.tabulate import Table, tabulate, tabulated
from tests.world.world import Asked, World

_SHOWN = 10


@contextmanager
def _spark() -> Iterator[SparkSession]:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", jvm.OPTIONS)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _tables(domains: Sequence[Domain], sample: int | None, seed: int) -> list[Table]:
    wanted = [(domain, predicates(domain, sample, seed)) for domain in domains]
    found = {domain.name: tabulated(domain, texts) for domain, texts in wanted}
    if None in found.values():
        with _spark() as spark:
            for domain, texts in wanted:
                start = time.monotonic()
                found[domain.name] = tabulate(spark, domain, texts)
                _say(f"{domain.name}: Spark planned {len(texts):,} predicates, {time.monotonic() - start:.0f} s")
    return [table for table in found.values() if table is not None]


def _say(text: str) -> None:
    print(text, flush=True)


def _judged(
    figures: Figures, world: World, evaluator: Evaluator, asked: Sequence[Asked], than: Evaluator | None = None
) -> Judgement:
    start = time.monotonic()
    found = judge(world, evaluator, asked, than=than)
    seconds = time.monotonic() - start
    figures.add(world, found, seconds)
    _say(f"{world.domain.name}: {found}, {seconds:.0f} s")
    for finding in found.wrong[:_SHOWN]:
        _say(f"  WRONG {finding}")
    return found


def main() -> int:
    """Judge, print figures; 1 where a skip is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.world", description=__doc__.partition("\n")[0])
    parser.add_argument("domains", nargs="*", help="names of domains; all if there are none")
    parser.add_argument("--sample", type=int, help="so many predicates of each domain; all if not given")
    parser.add_argument("--seed", type=int, default=18, help="which ones (18)")
    parser.add_argument(
        "--elasticsearch",
        type=int,
        default=4_000,
        metavar="N",
        help="of so many filters of each domain Elasticsearch is asked (4,000; 0: it is not asked)",
    )
    parser.add_argument("--save", action="store_true", help="keep what was found for the docs")
    given = parser.parse_args()
    unknown = set(given.domains) - {domain.name for domain in DOMAINS}
    if unknown:
        parser.error(f"there is no domain {', '.join(sorted(unknown))}, only {', '.join(d.name for d in DOMAINS)}")
    domains = [domain for domain in DOMAINS if not given.domains or domain.name in given.domains]
    figures, start = Figures(), time.monotonic()
    for domain, table in zip(domains, _tables(domains, given.sample, given.seed), strict=True):
        world = World.of(domain, table)
        _say(f"{domain.name}: {len(table.refused)} predicates that Spark refuses, {len(world.kinds)} kinds of metadata")
        plain = Plain(world)
        figures.add_missed(world, _judged(figures, world, plain, world.asked))
        with tempfile.TemporaryDirectory(prefix="es-skipping-world-") as folder:
            _judged(figures, world, Stored(world, ParquetStore(folder), "Parquet"), world.asked, plain)
        if given.elasticsearch:
            count = min(given.elasticsearch, len(world.asked))
            some = random.Random(given.seed).sample(list(world.asked), count)
            store = make_store(shared_url(), "es-skipping-world")
            try:
                _judged(figures, world, StoredInElasticsearch(world, store, "Elasticsearch"), some, plain)
                store.drop(f"world-{domain.name}")
            finally:
                store.close()
    for name in dict.fromkeys(one["evaluator"] for one in figures.judged):
        totals = {
            key: figures.total(key, name) for key in ("predicates", "filters", "cases", "wrong", "missed", "seconds")
        }
        _say(f"{name}: " + ", ".join(f"{total:,} {key}" for key, total in totals.items()))
    wrong = figures.total("wrong")
    _say(f"{figures.total('cases'):,} cases, {wrong:,} wrong, seed {given.seed}, {time.monotonic() - start:.0f} s")
    if given.save:
        figures.save()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
