"""The arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import es_skipping
from es_skipping.cli import (
    advise_command,
    demo_command,
    doctor_command,
    explain_command,
    files_command,
    index_commands,
    kibana_command,
    layout_commands,
    reindex_command,
    serve_command,
)
from es_skipping.cli.output import Console
from es_skipping.settings import seconds

__all__ = ["parser"]

if TYPE_CHECKING:
    Command: TypeAlias = Callable[[argparse.Namespace, Console], int]
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; each command sets ``run``."""
    top = argparse.ArgumentParser(
        prog="es-skipping", description="Data skipping for Spark: queries open only the files that can hold a match."
    )
    top.add_argument("--version", action="version", version=f"es-skipping {es_skipping.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _demo(commands)
    _index(commands)
    _reindex(commands)
    _layout(commands)
    _advise(commands)
    _explain(commands)
    _files(commands)
    _kibana(commands)
    _doctor(commands)
    _serve(commands)
    return top


def _command(commands: Commands, name: str, help: str, run: Command) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
    command.set_defaults(run=run)
    command.add_argument("--output", choices=("text", "json"), default="text", help="how data is written to stdout")
    command.add_argument(
        "--json", dest="output", action="store_const", const="json", default="text", help="short for --output json"
    )
    command.add_argument(
        "--store", metavar="URL", help="metadata store: http(s)://host:port is Elasticsearch, anything else Parquet"
    )
    command.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a Spark setting; repeat for more. Secrets as spark.es_skipping.store.token=env:NAME or =file:PATH",
    )
    command.add_argument("--master", help="Spark master (default: Spark's own)")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return command


def _demo(commands: Commands) -> None:
    command = _command(
        commands, "demo", "show the savings of skipping on TPC-H tables and real places", demo_command.run_demo
    )
    command.add_argument("--folder", type=Path, default=Path("demo-output"), help="directory for data, store and page")
    command.add_argument("--scale", type=_scale, default=0.1, help="TPC-H scale factor (default 0.1)")
    command.add_argument("--repeat", type=_positive, default=3, help="runs per query; the page shows the median time")


def _index(commands: Commands) -> None:
    index = commands.add_parser("index", help="create, refresh, describe, drop and list indexes")
    actions = index.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _command(actions, "create", "create indexes on a dataset", index_commands.create)
    _dataset(create)
    create.add_argument(
        "indexes", nargs="+", metavar="INDEX", help="for example 'MinMax(ts)' 'Prefix(db_name, length=15)'"
    )
    create.add_argument("--ensure", action="store_true", help="accept indexes that exist; without it they are an error")
    refresh = _command(actions, "refresh", "bring the metadata of a dataset up to date", index_commands.refresh)
    _dataset(refresh)
    refresh.add_argument("--watch", type=_duration, metavar="DURATION", help="refresh again and again, after 60s or so")
    describe = _command(actions, "describe", "list a dataset's indexes and their freshness", index_commands.describe)
    _dataset(describe)
    drop = _command(actions, "drop", "drop indexes of a dataset", index_commands.drop)
    _dataset(drop)
    drop.add_argument("indexes", nargs="*", metavar="INDEX", help="written as when they were created")
    drop.add_argument("--all", action="store_true", help="all indexes")
    _command(actions, "list", "list every index in the store", index_commands.list_indexes)


def _dataset(command: argparse.ArgumentParser) -> None:
    command.add_argument("dataset", help="path or URL of its root; with --table a catalog table")
    command.add_argument("--table", action="store_true", help="DATASET is the name of a catalog table")
    command.add_argument("--format", help="parquet (default), orc, csv, json or text")
    command.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="a reader option; repeatable"
    )
    command.add_argument("--schema", help="the reader's schema as DDL: 'ts TIMESTAMP, city STRING'")


def _reindex(commands: Commands) -> None:
    command = _command(
        commands,
        "reindex",
        "copy metadata from --store to another store, or to a new index of the same store; reads no data",
        reindex_command.run_reindex,
    )
    command.add_argument("datasets", nargs="*", metavar="DATASET", help="id, root or table, as in the source")
    command.add_argument("--all", action="store_true", help="every dataset of the source")
    command.add_argument("--to", metavar="URL", help="the store to copy to (default: --store)")
    command.add_argument(
        "--to-conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of the target only; repeatable"
    )
    command.add_argument("--into", metavar="ID", help="the dataset's id in the target")
    command.add_argument("--shards", type=_positive, help="primary shards of the new Elasticsearch index")
    command.add_argument("--replicas", type=int, help="replicas of the new Elasticsearch index")
    command.add_argument("--throttle", type=_positive, metavar="N", help="most objects per second")
    command.add_argument("--sample", type=_positive, default=1000, help="objects to compare (default 1000)")
    command.add_argument("--dry-run", action="store_true", help="report only; change nothing")
    command.add_argument(
        "--drop-old", action="store_true", help="remove the target's old indexes that are no longer in use"
    )
    command.add_argument(
        "--to-key",
        metavar="REFERENCE",
        help="give protected indexes a new key: env:NAME or file:PATH; hashed indexes are built anew from the data",
    )
    command.add_argument("--from-key", metavar="REFERENCE", help="with --to-key: only the indexes that have this key")


def _layout(commands: Commands) -> None:
    layout = commands.add_parser("layout", help="lay rows out so that a workload's filters skip")
    actions = layout.add_subparsers(dest="action", required=True, metavar="ACTION")
    analyze = _command(actions, "analyze", "predict the savings of a layout; writes nothing", layout_commands.analyze)
    apply = _command(actions, "apply", "write a dataset in a layout, to another location", layout_commands.apply)
    design = _command(
        actions, "design", "compare layouts by dry runs on a sample; writes nothing", layout_commands.design
    )
    for command in (analyze, apply, design):
        _dataset(command)
        _workload(command, required=True)
        command.add_argument("--min-rows", type=_positive, default=50_000, help="fewest rows of an object (50000)")
        command.add_argument(
            "--within",
            metavar="SQL",
            action="append",
            default=[],
            help="rows with different values of this column never share an object",
        )
        command.add_argument("--holdout", type=_share, default=0.2, help="share of the queries to predict on (0.2)")
    for command in (analyze, apply):
        command.add_argument(
            "--system",
            choices=("sop", "tree", "gsop", "gsopr"),
            default="sop",
            help="one order of rows by features (sop, the default) or by a query tree (tree), column groups (gsop), "
            "or groups that store some cells twice (gsopr)",
        )
        command.add_argument(
            "--storage-budget", type=_budget, help="with gsopr: stored cells, relative to the table's (1.2)"
        )
        command.add_argument(
            "--opening", type=_cells, help="with gsop and gsopr: what a block of joined groups costs, in cells (22000)"
        )
        command.add_argument(
            "--features", type=_count, help="most features (15; for groups 40); with sop, 0 finds the number by trying"
        )
        command.add_argument("--min-support", type=_positive, help="fewest queries that a feature must help")
        command.add_argument("--picture", type=Path, metavar="FILE", help="draw the layout, as SVG")
    design.add_argument("--sample", type=_positive, default=200_000, metavar="ROWS", help="most rows to read (200000)")
    design.add_argument(
        "--page", type=Path, metavar="FILE", help="also compare them for several sizes and features, as an HTML page"
    )
    analyze.add_argument("--chart", type=Path, metavar="FILE", help="draw how much the workload repeats, as SVG")
    apply.add_argument("--to", metavar="PATH", help="where to write: a path that does not exist")
    apply.add_argument("--to-table", metavar="NAME", help="instead: a table that does not exist")
    apply.add_argument(
        "--index", metavar="INDEX", action="append", default=[], help="an index to build on the result; repeatable"
    )
    status = _command(
        actions, "status", "report whether a new layout is due; exit code 4 if it is", layout_commands.status
    )
    status.add_argument("dataset", help="where the layout was written; with --table a catalog table")
    status.add_argument("--table", action="store_true", help="DATASET is the name of a catalog table")
    _workload(status, required=False)
    repack = _command(
        actions, "repack", "pack the blocks of column groups that an earlier version wrote", layout_commands.repack
    )
    repack.add_argument("dataset", help="where the column groups were written")


def _workload(command: argparse.ArgumentParser, *, required: bool) -> None:
    given = command.add_mutually_exclusive_group(required=required)
    given.add_argument("--queries", metavar="FILE", help="queries or conditions, oldest first")
    given.add_argument(
        "--query-log", type=_positive, metavar="DAYS", help="instead: the last days of the store's query log"
    )
    _views(command)


def _advise(commands: Commands) -> None:
    command = _command(
        commands,
        "advise",
        "choose the indexes that save a workload most bytes, from a sample of a dataset",
        advise_command.run_advise,
    )
    _dataset(command)
    command.add_argument("--budget", required=True, help="bytes of metadata of all indexes together, such as 50m")
    command.add_argument(
        "--filter",
        metavar="SQL",
        action="append",
        default=[],
        help="a filter of the workload; repeatable. Without it the dataset's queries in the query log",
    )
    command.add_argument("--apply", action="store_true", help="create the advised indexes")
    command.add_argument("--drop", action="store_true", help="with --apply: also drop the indexes that are not needed")


def _explain(commands: Commands) -> None:
    command = _command(
        commands,
        "explain",
        "explain what a query would skip and why not more; runs nothing",
        explain_command.run_explain,
    )
    command.add_argument(
        "sql", help="a query, such as SELECT * FROM parquet.`/lake/events` WHERE ts > '2026-01-01'; - reads stdin"
    )
    _views(command)


def _views(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--view",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="name a dataset (Parquet, or NAME=FORMAT:PATH) for queries; repeatable",
    )


def _files(commands: Commands) -> None:
    command = _command(
        commands,
        "files",
        "list the files of a dataset that a filter needs, for engines other than Spark; starts no Spark",
        files_command.run_files,
    )
    command.add_argument("dataset", help="path or URL of a directory of Parquet files")
    command.add_argument("filter", help="a condition in Spark's SQL: \"ts >= '2026-11-20' AND city = 'Oslo'\"")
    command.add_argument("--allow-empty", action="store_true", help="list nothing if no file can match")


def _kibana(commands: Commands) -> None:
    kibana = commands.add_parser("kibana", help="data views and a dashboard for Kibana")
    actions = kibana.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = _command(actions, "export", "write the saved objects to a file", kibana_command.export_objects)
    export.add_argument("file", help="where to write; - is standard output")
    export.add_argument("--kibana", metavar="URL", help="export them from this Kibana")
    export.add_argument("--space", help="the space's id")
    put = _command(actions, "import", "import the saved objects into a Kibana", kibana_command.import_objects)
    put.add_argument("file", nargs="?", help="a file of saved objects (default: the shipped ones)")
    put.add_argument("--kibana", metavar="URL", required=True, help="http(s)://host:port of Kibana")
    put.add_argument("--space", help="the space's id")


def _doctor(commands: Commands) -> None:
    command = _command(
        commands, "doctor", "check Python, Java, Spark, the jar, the settings and the store", doctor_command.run_doctor
    )
    command.add_argument("--no-spark", action="store_true", help="skip the checks that start Spark")
    command.add_argument(
        "--stale-days",
        type=_positive,
        default=7,
        help="report datasets that were not refreshed for this many days (default 7)",
    )


def _duration(text: str) -> float:
    try:
        return seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}, expected {error}") from None


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share between 0 and 1")
    return value


def _budget(text: str) -> float:
    value = float(text)
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is below 1, the size of the table itself")
    return value


def _cells(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of cells, 0 or more")
    return value


def _scale(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a scale factor above 0")
    return value


def _serve(commands: Commands) -> None:
    command = commands.add_parser(
        "serve",
        help="answer the look-ups of a JVM without a Python driver; Spark starts this itself",
        description="Answer the look-ups of a JVM without a Python driver. Spark starts this itself, and ends it.",
    )
    command.set_defaults(run=serve_command.run_serve, output="text")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
