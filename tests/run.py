"""Runs the suite, in the parts that one asks for, with one closing line.

    make test              on the newest Spark: each value of each factor, such as stores and settings
    make test-clients      spark-sql, Thrift, Spark Connect, and Java applications, on the newest Spark
    make test-connectors   Delta, Iceberg, Avro and Sedona, on the newest Spark that each of them serves
    make test-oldest       on the oldest Spark: what differs between versions
    make test-versions     all of these
    make test-all          all of these, and the combinations of the factors

With ``--half 0`` or ``--half 1`` the long legs run half of their tests each, as continuous integration does.

Three legs run at a time, the long ones of all parts first. They share nothing but the checkout, and an Elasticsearch
node with those before them. What each printed is shown at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.elasticsearch_node import URL_VARIABLE, another_url
from tests.in_turn import HALF
from tests.jvm import INTERPRETED_OPTIONS, OPTIONS, make_archive, write_fewer_defaults

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "tests"

WHOLE_QUERIES = [f"tests/spark/test_{name}.py" for name in ("bridge_queries", "join_plans", "matrix")]
"""On the newest Spark and on the oldest."""

MORE_QUERIES = [f"tests/spark/test_{name}.py" for name in ("formats", "tables", "dsv2_files")]
"""Whole on the newest Spark, and on the oldest for ``make test-all``."""

ON_THE_OLDEST = [
    *WHOLE_QUERIES,
    "tests/spark/test_formats.py::test_formats",
    "tests/spark/test_tables.py::test_tables",
    "tests/spark/test_dsv2_files.py::test_every_format_skips",
    "tests/spark/test_distinct_rows.py::test_files_are_read_by_column",
    "tests/spark/test_end_to_end.py::test_predicates",
    "tests/spark/test_end_to_end.py::test_forms_of_queries[true]",
    "tests/spark/test_end_to_end.py::test_dynamic_partition_pruning",
    "tests/spark/test_joins.py::test_a_join_opens_the_files_of_its_keys",
    "tests/spark/test_first_rows.py::test_ordered",
    "tests/spark/test_functions.py::test_functions",
    "tests/spark/test_bridge_failures.py::test_deep_trees",
    "tests/spark/test_verify.py::test_what_changed_since_the_listing_is_read",
    "tests/spark/test_end_to_end_freshness.py::test_new_changed_deleted_and_overwritten_objects",
    "tests/layout/spark/test_groups.py::test_a_query_opens_the_groups_and_blocks_that_it_needs",
    "tests/predicates/test_catalyst.py",
    "tests/reports/test_explain.py::test_what_would_be_skipped_is_what_is_skipped",
    "tests/soundness/test_soundness.py::test_executed_queries_return_the_same_rows[parquet]",
    "tests/sql/test_statements.py::test_a_round_trip[parquet]",
    "tests/sql/test_statements.py::test_tables_and_expressions",
    "tests/sql/test_statements.py::test_a_syntax_error_points_into_the_statement",
]
"""Where versions of Spark differ: the bridge, what it reads of plans, whole queries; a case or two of each feature."""

MORE_ON_THE_OLDEST = [
    *MORE_QUERIES,
    *(f"tests/spark/test_{name}.py" for name in ("bridge_failures", "end_to_end_freshness", "functions", "verify")),
    *(f"tests/spark/test_{name}.py" for name in ("joins", "join_keys", "first_rows", "session")),
    *(f"tests/spark/test_{name}.py" for name in ("end_to_end", "times", "distinct_rows")),
    "tests/layout/spark/test_groups.py::test_a_table_and_a_view",
    "tests/reports/test_explain.py",
    "tests/soundness/test_soundness.py",
    "tests/soundness/test_life.py::test_the_life_of_a_dataset[hdfs]",
    "tests/soundness/test_life.py::test_the_life_of_a_dataset[s3]",
    "tests/clients/test_statements.py::test_a_round_trip_in_spark_sql",
    "tests/spark/test_open_files.py::test_indexed_while_open[csv]",
    "tests/spark/test_open_files.py::test_indexed_when_closed_and_appended_to_since",
    "tests/sql",
]
"""The other cases, for ``make test-all``."""

ON_DELTA = [
    f"tests/connectors/test_delta{name}.py"
    for name in ("", "_cases", "_search", "_changes", "_on_commit", "_joins", "_generated", "_life")
]

ON_THE_OLDEST_DELTA = [
    "tests/connectors/test_delta.py::test_each_index_type_leaves_one_file[ValueList]",
    *(
        f"tests/connectors/test_delta.py::test_{name}"
        for name in (
            "what_a_report_says",
            "sql_statements_beside_deltas_own",
            "row_tracking_and_metadata_columns",
            "a_join_opens_the_files_of_its_keys[true]",
        )
    ),
    "tests/connectors/test_delta_search.py::test_only_the_search_skips",
    "tests/connectors/test_delta_on_commit.py::test_a_command_is_indexed_before_it_returns",
    "tests/connectors/test_delta_changes.py::test_a_refresh_by_changes_is_one_from_nothing[OPTIMIZE]",
]
"""The leg `together` tries more of Delta and Iceberg on the oldest Spark."""

ON_ICEBERG = [
    *(f"tests/connectors/test_iceberg{name}.py" for name in ("", "_cases", "_changes", "_on_commit", "_search")),
    *(f"tests/connectors/test_iceberg_{name}.py" for name in ("limits", "evolution", "pyiceberg", "generated", "life")),
]

ON_THE_OLDEST_ICEBERG = [
    "tests/connectors/test_iceberg.py::test_each_index_type_leaves_one_file[ValueList]",
    *(
        f"tests/connectors/test_iceberg.py::test_{name}"
        for name in (
            "what_a_report_says",
            "deleted_rows[merge-on-read-2]",
            "equality_deletes",
            "changes_commit_what_they_commit_without_skipping[copy-on-write]",
            "a_join_without_a_shuffle",
            "runtime_filters",
            "what_is_left_alone",
        )
    ),
    "tests/connectors/test_iceberg_changes.py::test_an_append_asks_for_the_appended_files",
    "tests/connectors/test_iceberg_on_commit.py::test_a_command_is_indexed_soon",
    "tests/connectors/test_iceberg_changes.py::test_all_files_are_listed_where_ancestry_does_not_tell",
    "tests/connectors/test_iceberg_cases.py::test_incremental_reads_are_left_alone",
    "tests/connectors/test_iceberg_search.py::test_only_the_search_skips[delete]",
    "tests/connectors/test_iceberg_limits.py::test_files_without_deleted_rows_guarantee_those_of_a_limit[3]",
    "tests/connectors/test_iceberg_limits.py::test_files_that_lack_a_column_with_a_default",
    "tests/connectors/test_iceberg_limits.py::test_columns_by_which_iceberg_loses_rows",
]

MORE_ON_THE_OLDEST_ICEBERG = [
    *(path for path in ON_ICEBERG if "evolution" not in path),
    *(
        f"tests/connectors/test_iceberg_evolution.py::test_{name}"
        for name in (
            "a_column_added_after_files_were_indexed",
            "promoted_numbers_are_unknown_until_they_are_built_again",
            "a_partition_column_that_files_lack",
        )
    ),
]
"""For ``make test-all``. Iceberg 1.10 itself finds no row by a column's initial default."""


def _without(paths: Iterable[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


PARTS = ("newest", "clients", "connectors", "oldest")

AT_A_TIME = 3
"""One more than the machine has cores: legs also wait, for servers, processes and clocks."""

FEWER_PREDICATES = {"ES_SKIPPING_SOUNDNESS": "100"}
FEWEST_PREDICATES = {"ES_SKIPPING_SOUNDNESS": "60"}
"""For each store; the thousand that are the default, and the record runs, are for people."""

LEGS_OF_THEIR_OWN = {
    "queries": [
        *WHOLE_QUERIES,
        *MORE_QUERIES,
        *(f"tests/spark/test_{name}.py" for name in ("distinct_rows", "functions", "row_groups")),
        *(f"tests/spark/test_end_to_end{name}.py" for name in ("", "_elasticsearch", "_freshness")),
    ],
    "spark": ["tests/spark"],
    "build": ["tests/build", "tests/layout/spark", "tests/lookup"],
    "stores": ["tests/stores"],
    "commands": ["tests/cli"],
    "traps": ["tests/traps"],
}
"""On the newest Spark."""

NOT_COMPILED = ("spark", "newest")
"""Legs whose queries Spark does not compile, which would be a tenth of their time. It then reads Parquet by rows, not
by batches, so what reads batches is in other legs. ``make test-all`` compiles all."""

IN_HALVES = ("newest", "build", "spark", "queries", "delta", "iceberg", "commands", "clients", "stores")
"""The long legs. The others run whole: the traps, the oldest versions, and those of a few tests."""

OF_CLIENTS = ["tests/clients"]
"""Each test starts applications of its own, which wait for JVMs and helpers to start."""

BY_LINT = [f"tests/test_{name}.py" for name in ("architecture", "docs", "words")]
"""``make lint`` runs these."""

EVERYTHING_ELSE = [
    *("tests", *(part for paths in (*LEGS_OF_THEIR_OWN.values(), OF_CLIENTS, BY_LINT) for part in _without(paths))),
    *("es_skipping", "--doctest-modules", "-o", "doctest_optionflags=ELLIPSIS NORMALIZE_WHITESPACE"),
]
"""The other tests, and the examples in the docstrings; on the newest Spark too."""


@dataclass(frozen=True)
class Outcome:
    """One leg's counts, from pytest's own report."""

    name: str
    passed: int
    failed: int
    errors: int
    skipped: int
    seconds: float
    code: int


def command(python: str, name: str, paths: list[str], *, long: bool) -> list[str]:
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    chosen = [] if long else ["-m", "not long"]
    return [python, "-m", "pytest", "-q", "--durations=15", f"--junitxml={report}", *chosen, *paths]


def outcome(name: str, code: int, seconds: float) -> Outcome:
    report = REPORTS / f"{name}.xml"
    if not report.is_file():  # pytest did not get as far as to write one
        return Outcome(name, 0, 0, 1, 0, seconds, code or 1)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        for key in counts:
            counts[key] += int(suite.get(key, "0"))
    passed = counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]
    return Outcome(name, passed, counts["failures"], counts["errors"], counts["skipped"], seconds, code)


def summary(outcomes: list[Outcome], seconds: float) -> str:
    """The closing line of all legs together, in pytest's form."""
    named = (("failed", "failed"), ("passed", "passed"), ("skipped", "skipped"), ("errors", "errors"))
    totals = [(sum(getattr(each, key) for each in outcomes), word) for key, word in named]
    text = ", ".join(f"{count} {word}" for count, word in totals if count) or "no tests ran"
    return f" {text} in {seconds:.2f}s ({int(seconds // 60)}:{int(seconds % 60):02d}) ".center(100, "=")


def elasticsearch() -> Mapping[str, str]:
    """How the tests find an Elasticsearch node of their own, which this starts."""
    if URL_VARIABLE not in os.environ:
        with contextlib.suppress(pytest.fail.Exception):  # the tests that need one say so themselves
            return {URL_VARIABLE: another_url()}
    return {}


@dataclass(frozen=True)
class Leg:
    """One run of pytest: for which part of the suite, under which Python, over what."""

    part: str
    name: str
    python: str
    paths: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    long: bool = False
    """Whether the tests that are marked so run too."""

    @property
    def interpreted(self) -> bool:
        """Whether Spark does not compile its queries."""
        return self.name in NOT_COMPILED and not self.long

    def run(self, given: Mapping[str, str]) -> Outcome:
        """Run it; what it prints is kept in a file beside its report."""
        begun = time.monotonic()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **given, **self.environment}
        with (REPORTS / f"{self.name}.log").open("w", encoding="utf-8") as sink:
            code = subprocess.call(
                command(self.python, self.name, self.paths, long=self.long),
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        ended = outcome(self.name, code, time.monotonic() - begun)
        failed = ended.failed + ended.errors
        print(f"{self.name}: {ended.passed} passed, {failed} failed, {ended.seconds / 60:.1f} min", flush=True)
        return ended

    @property
    def log(self) -> str:
        return (REPORTS / f"{self.name}.log").read_text(encoding="utf-8", errors="replace")


def run_one_after_another(legs: queue.SimpleQueue[Leg], jvm: Mapping[str, str]) -> list[Outcome]:
    """What is left of the legs, with an Elasticsearch node for them, and for each Python the options of its JVMs."""
    given = elasticsearch()
    outcomes = []
    while True:
        try:
            leg = legs.get_nowait()
        except queue.Empty:
            return outcomes
        options = f"{jvm[leg.python]} {INTERPRETED_OPTIONS}" if leg.interpreted else jvm[leg.python]
        outcomes.append(leg.run({**given, "SPARK_SUBMIT_OPTS": options}))


def legs_of(given: argparse.Namespace) -> list[Leg]:
    """All legs; the longest first."""

    def leg(
        part: str, name: str, python: str, paths: list[str], *more: str, few: Mapping[str, str] | None = None
    ) -> Leg:
        if given.all:
            return Leg(part, name, python, [*paths, *more], {}, long=True)
        halved = {HALF: str(given.half)} if given.half is not None and name in IN_HALVES else {}
        return Leg(part, name, python, paths, {**(few or {}), **halved})

    def newest(*names: str) -> list[Leg]:
        return [leg("newest", name, given.newest, LEGS_OF_THEIR_OWN[name]) for name in names]

    return [
        *newest("build"),
        leg("newest", "newest", given.newest, EVERYTHING_ELSE, few=FEWER_PREDICATES),
        leg("newest", "spark", given.newest, [*LEGS_OF_THEIR_OWN["spark"], *_without(LEGS_OF_THEIR_OWN["queries"])]),
        leg("connectors", "delta", given.delta, ON_DELTA),
        *newest("commands"),
        leg("connectors", "iceberg", given.iceberg, ON_ICEBERG),
        leg("clients", "clients", given.newest, OF_CLIENTS),
        *newest("stores"),
        leg("oldest", "oldest", given.oldest, ON_THE_OLDEST, *MORE_ON_THE_OLDEST, few=FEWEST_PREDICATES),
        *newest("queries", "traps"),
        leg("oldest", "delta-oldest", given.oldest, ON_THE_OLDEST_DELTA, *ON_DELTA),
        leg("oldest", "iceberg-oldest", given.oldest, ON_THE_OLDEST_ICEBERG, *MORE_ON_THE_OLDEST_ICEBERG),
        leg("connectors", "together", given.oldest, ["tests/connectors/test_together.py"]),
        leg("connectors", "avro", given.oldest, ["tests/connectors/test_avro.py"]),
        leg("connectors", "sedona", given.oldest, ["tests/connectors/test_sedona.py"]),
    ]


def run_all(legs: list[Leg], jvm: Mapping[str, str]) -> list[Outcome]:
    """Run the legs, some at a time."""
    waiting: queue.SimpleQueue[Leg] = queue.SimpleQueue()
    for leg in legs:
        waiting.put(leg)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        workers = [pool.submit(run_one_after_another, waiting, jvm) for _ in range(AT_A_TIME)]
        return [ended for worker in workers for ended in worker.result()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newest", required=True, help="Python with the newest supported Spark")
    parser.add_argument("--oldest", required=True, help="Python with the oldest supported Spark")
    parser.add_argument("--iceberg", required=True, help="Python with the newest Spark that Iceberg supports")
    parser.add_argument("--delta", required=True, help="Python with the newest Spark that Delta supports")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["newest"], help="what to try")
    parser.add_argument("--all", action="store_true", help="every combination, and all predicates")
    parser.add_argument("--half", type=int, choices=(0, 1), help="of the long legs, this half of the tests")
    given = parser.parse_args()

    REPORTS.mkdir(parents=True, exist_ok=True)
    write_fewer_defaults()
    legs = [leg for leg in legs_of(given) if leg.part in given.parts]
    begun = time.monotonic()
    pythons = Counter(leg.python for leg in legs)
    often = [python for python, count in pythons.items() if count > 1]  # to make an archive takes what two JVMs do
    archives = [REPORTS / f"classes-{at}.jsa" for at in range(len(often))]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        jvm = dict.fromkeys(pythons, OPTIONS) | dict(zip(often, pool.map(make_archive, often, archives), strict=True))
    if given.half is not None:
        print(f"half {given.half} of the tests of: {', '.join(leg.name for leg in legs if HALF in leg.environment)}")
    outcomes = run_all(legs, jvm)
    for archive in archives:
        archive.unlink(missing_ok=True)
    for leg in legs:
        print(f"\n== {leg.name}\n{leg.log}")
    for each in outcomes:
        failed = each.failed + each.errors
        print(f"{each.name}: {each.passed} passed, {failed} failed, {each.seconds / 60:.1f} min")
    closing = summary(outcomes, time.monotonic() - begun)
    (REPORTS / "closing.txt").write_text(closing + "\n", encoding="utf-8")
    print(closing, flush=True)
    return 1 if any(each.code for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
