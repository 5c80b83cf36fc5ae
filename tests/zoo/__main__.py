"""Hunts every animal and prints what it took, as a table.

make zoo
python -m tests.zoo --seed 18 --predicates 400
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping

from tests.zoo.animals import ANIMALS
from tests.zoo.hunt import SOURCES, Catch, Hunt, hunt
from tests.zoo.ours import OURS

_PLAIN = "the plain evaluation of the world's indexes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=1, help="rounds of 100 datasets after which a hunt may end")
    parser.add_argument("--predicates", type=int, default=0, help="of each domain of the world; 0: leave the world out")
    given = parser.parse_args()
    begun = time.monotonic()
    hunts = {source: _hunt(source, given.seed, given.rounds) for source in SOURCES}
    worlds, wrong = _worlds(given.predicates, given.seed) if given.predicates else ({}, [])
    for where, one in {**hunts, **worlds}.items():
        sound = (name for name in one.caught if name.endswith(" mended") or name in OURS)
        wrong += (f"{where}: {name} is caught: {one.caught[name].example}" for name in sound)
    free = [animal.name for animal in ANIMALS if _first(animal.name, hunts) is None]
    print("| bug | what was lost | random: cases, seconds | enumerated: cases, seconds |")
    print("|---|---|---|---|")
    for animal in ANIMALS:
        also = f", {', '.join(animal.also)}" if animal.also else ""
        told = _told(_first(animal.name, hunts)), _told(_first(animal.name, worlds))
        print(f"| [{animal.name}]({animal.url}){also} | {animal.lost} | {told[0]} | {told[1]} |")
    for kind, found in (("random", hunts), ("enumerated", worlds)):
        for where, one in found.items():
            ours = sum(one.skipped.get(name, 0) for name in (*OURS, _PLAIN))
            print(f"{kind}, {where}: {one.cases:,} cases in {one.seconds:.0f} s, {ours:,} objects skipped by ours")
    print(f"seed {given.seed}, {time.monotonic() - begun:.0f} s")
    for line in [*wrong, *(f"{name} was not caught" for name in free)]:
        print(line)
    return 1 if wrong or free else 0


def _hunt(source: str, seed: int, rounds: int) -> Hunt:
    here = [animal for animal in ANIMALS if source in animal.types]
    mended = {f"{animal.name} mended": animal.mended for animal in here}
    return hunt(source, {animal.name: animal.wrong for animal in here}, {**mended, **OURS}, seed, rounds, 40)


def _worlds(predicates: int, seed: int) -> tuple[dict[str, Hunt], list[str]]:
    """What was caught in the enumerated world, and what of ours was, which `make world` asks in full."""
    from pyspark.sql import SparkSession

    from tests.world.domains import DOMAINS
    from tests.world.evaluators import Plain
    from tests.world.judge import judge
    from tests.world.predicates import predicates as predicates_of
    from tests.world.tabulate import tabulate
    from tests.world.world import World
    from tests.zoo.enumerated import roam

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    both = {animal.name: animal.wrong for animal in ANIMALS}
    both |= {f"{animal.name} mended": animal.mended for animal in ANIMALS}
    found: dict[str, Hunt] = {}
    wrong: list[str] = []
    try:
        # Of pairs of columns there are a hundred times as many objects, and the animals look at one column.
        for domain in (domain for domain in DOMAINS if len(domain.columns) == 1):
            world = World.of(domain, tabulate(spark, domain, predicates_of(domain, predicates, seed)))
            found[domain.name] = roam(world, both)
            ours = judge(world, Plain(world), world.asked)
            found[domain.name].skipped[_PLAIN] = ours.skipped
            wrong += map(str, ours.wrong)
    finally:
        spark.stop()
    return found, wrong


def _first(name: str, hunts: Mapping[str, Hunt]) -> Catch | None:
    caught = [found.caught[name] for found in hunts.values() if name in found.caught]
    return min(caught, key=lambda catch: catch.cases, default=None)


def _told(catch: Catch | None) -> str:
    return "-" if catch is None else f"{catch.cases:,}, {catch.seconds:.1f}"


if __name__ == "__main__":
    sys.exit(main())
