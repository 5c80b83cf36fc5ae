"""``es-skipping index create | refresh | describe | drop | list``."""

from __future__ import annotations

import argparse
import dataclasses
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from es_skipping.catalog import IndexDefinition
from es_skipping.cli.index_text import parse_index
from es_skipping.cli.output import Console
from es_skipping.cli.session import dataset_named, given_conf, spark_session
from es_skipping.errors import EsSkippingError, IndexDefinitionError, StoreError
from es_skipping.indexes.registry import index_class, index_types, readable_id
from es_skipping.settings import PREFIX, Settings
from es_skipping.spark.services import store_of
from es_skipping.stores.registry import open_store, store_type
from es_skipping.stores.urls import scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.dataset import Dataset
    from es_skipping.build.results import RefreshResult

__all__ = ["create", "describe", "drop", "index_label", "list_indexes", "needs_no_spark", "refresh"]

SOME_FAILED = 3
_OF_TABLES = ("table_format", "snapshot", "indexed_snapshot")
STORE_URL = PREFIX + "store.url"


def create(args: argparse.Namespace, console: Console) -> int:
    indexes = [parse_index(text) for text in args.indexes]  # before Spark starts, so that a mistake is reported at once
    with spark_session(args) as spark:
        dataset = _dataset(spark, args)
        with console.step(f"indexing {args.dataset}") as progress:
            make = dataset.ensure_indexes if args.ensure else dataset.create_indexes
            result = make(*indexes, progress=progress)
    return _report(result, console)


def refresh(args: argparse.Namespace, console: Console) -> int:
    with spark_session(args) as spark:
        dataset = _dataset(spark, args)
        with console.step(f"refreshing {args.dataset}") as progress:
            result = dataset.refresh(progress=progress)
        code = _report(result, console)
        while args.watch is not None:
            time.sleep(args.watch)
            _refresh_again(dataset, console)
    return code


def _refresh_again(dataset: Dataset, console: Console) -> None:
    """Tell what has changed, or why nothing could be refreshed; the next time may be better."""
    try:
        result = dataset.refresh()
    except EsSkippingError as error:
        console.tell(f"not refreshed: {error}")
        return
    if result.added or result.updated or result.removed or result.failed:
        _report(result, console)


def describe(args: argparse.Namespace, console: Console) -> int:
    with spark_session(args) as spark:
        dataset = _dataset(spark, args)
        rows = _rows(dataset.describe())
        health = _fields(dataset.health())
        if health["table_format"] is None:  # plain files have no snapshot
            health = {name: health[name] for name in health if name not in _OF_TABLES}
        if console.form == "json":
            console.value({"indexes": rows, "health": health})
        else:
            if rows:
                console.rows(rows)
                console.text("")
            else:
                console.tell(f"no indexes of {args.dataset} in the store {store_of(spark).url}")
            console.value(health)
    return 0


def drop(args: argparse.Namespace, console: Console) -> int:
    if bool(args.indexes) == args.all:
        raise IndexDefinitionError("pass either indexes or --all")
    indexes = [parse_index(text) for text in args.indexes]
    with spark_session(args) as spark:
        dataset = _dataset(spark, args)
        if args.all:
            there = _may_be_indexed(dataset)
            dataset.drop_indexes(all=True)
            if not there:
                console.tell(f"no indexes of {args.dataset} in the store {store_of(spark).url}: nothing was dropped")
                return 0
        else:
            dataset.drop_indexes(*indexes)
    console.tell(f"dropped {', '.join(args.indexes) or 'all indexes'} of {args.dataset}")
    return 0


def list_indexes(args: argparse.Namespace, console: Console) -> int:
    url = args.store or given_conf(args).get(STORE_URL)
    if url and needs_no_spark(url):
        entries = open_store(url, Settings(given_conf(args))).datasets()
    else:
        with spark_session(args) as spark:
            store = store_of(spark)
            url, entries = store.url, store.datasets()
    rows = [
        {
            "id": entry.definition.id,
            "dataset": entry.definition.table or ", ".join(entry.definition.roots),
            "format": entry.definition.format,
            "index": index_label(index),
            "objects": entry.objects,
            "metadata bytes": entry.metadata_bytes.get(index.id),
            "refreshed": datetime.fromtimestamp(entry.refreshed / 1000, timezone.utc).isoformat(timespec="seconds"),
            "snapshot": entry.definition.snapshot,
        }
        for entry in entries
        if not entry.definition.is_of_row_groups
        for index in entry.definition.indexes
    ]
    console.rows(rows)
    if not rows:
        console.tell(f"no indexes in the store {url}")
    return 0


def index_label(index: IndexDefinition) -> str:
    """An index as on the command line, without parameters at their defaults and without quotes around columns.

    Examples
    --------
    >>> from es_skipping.predicates.types import parse_type
    >>> text = parse_type("string")
    >>> index_label(IndexDefinition("prefix(a,length=3)", "Prefix", ("a",), "values", text, parameters={"length": 3}))
    'Prefix(a, length=3)'
    """
    defaults = _defaults(index.type)
    parameters = [f"{name}={value}" for name, value in index.parameters.items() if defaults.get(name) != value]
    return f"{index.type}({', '.join([*index.columns, *parameters])})"


def _defaults(index_type: str) -> dict[str, Any]:
    """The defaults of an index type's parameters; empty if the type is unknown here."""
    if index_type not in index_types():
        return {}
    cls = index_class(index_type)
    return {field.name: field.default for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}


def needs_no_spark(url: str) -> bool:
    """Whether a store can be reached without a session's file systems: a server, or files on a local disk."""
    return not store_type(url).uses_files or scheme_of(url) in (None, "file")


def _dataset(spark: SparkSession, args: argparse.Namespace) -> Dataset:
    import es_skipping as esk

    return esk.Dataset(spark, **dataset_named(args))


def _may_be_indexed(dataset: Dataset) -> bool:
    """Whether the store holds the dataset. Dropping also works on damaged metadata."""
    try:
        return dataset.is_indexed()
    except StoreError:
        return True


def _report(result: RefreshResult, console: Console) -> int:
    counts = {name: getattr(result, name) for name in ("added", "updated", "removed", "unchanged")}
    failed = [{"path": path, "reason": reason} for path, reason in result.failed]
    if console.form == "json":
        unknown = [{"index": id, "reason": reason} for id, reason in result.unknown]
        degraded = [{"index": id, "form": form, "objects": objects} for id, form, objects in result.degraded]
        effective = [{"index": id, "skips": round(skipped, 4)} for id, skipped in result.effectiveness]
        console.value(
            {**counts, "failed": failed, "unknown": unknown, "degraded": degraded, "effectiveness": effective}
        )
    else:
        console.value({**counts, "failed": len(failed)})
    for failure in failed:
        console.tell(f"not indexed: {failure['path']}: {failure['reason']}")
    for id, form, objects in result.degraded:
        console.tell(f"metadata.budget is used up: {readable_id(id)} is reduced to {form} for {objects} objects")
    return SOME_FAILED if failed else 0


def _rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def _fields(value: Any) -> dict[str, Any]:
    """A result object's fields by name."""
    if isinstance(value, dict):
        return value
    names = list(getattr(value, "__dataclass_fields__", ()) or getattr(value, "_fields", ()))
    return {name: getattr(value, name) for name in names}
