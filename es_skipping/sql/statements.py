"""Carries out a statement that the shim parsed: ``CREATE SKIPPING INDEX ON t (minmax(ts))`` and the like."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from es_skipping.build.dataset import Dataset
from es_skipping.errors import EsSkippingError, IndexDefinitionError
from es_skipping.indexes.registry import index_class, index_types
from es_skipping.predicates.show import sql_name
from es_skipping.reports.advisor import advise
from es_skipping.reports.explainer import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from es_skipping.build.results import RefreshResult
    from es_skipping.indexes.base import Index

__all__ = ["carry_out"]

_FORMATS: Final = ("parquet", "orc", "csv", "json", "text", "delta", "iceberg")

_BUDGET: Final = "50 MB"
"""The budget of an advice that names none."""

Rows = list[list[Any]]
Statement = Mapping[str, Any]


class _WrongIndex(Exception):
    """An error about one index of the statement."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def carry_out(spark: SparkSession, statement: str) -> str:
    """Carry out one statement; never raises.

    Parameters
    ----------
    spark
        The session that runs the statement.
    statement
        JSON of ``io.esskipping.sql.Statement``: ``do``, ``lenient`` (IF [NOT] EXISTS was given), ``target`` (the parts
        of the table's name), ``indexes``, for EXPLAIN ``query``, and for procedures ``options``: their other arguments.

    Returns
    -------
    str
        JSON: ``rows``, or ``error`` and, if it is about an index, the number of that ``index``.
    """
    try:
        return json.dumps({"rows": _rows(spark, json.loads(statement))})
    except _WrongIndex as error:
        return json.dumps({"error": str(error), "index": error.index})
    except EsSkippingError as error:
        return json.dumps({"error": str(error)})
    except Exception as error:
        return json.dumps(
            {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"}
        )


def _rows(spark: SparkSession, statement: Statement) -> Rows:
    if statement["do"] == "explain":
        return [[str(explain(spark.sql(statement["query"])))]]
    dataset = _dataset(spark, statement["target"])
    indexes = [_index(number, written) for number, written in enumerate(statement["indexes"])]
    return _ACTIONS[statement["do"]](dataset, indexes, statement)


def _dataset(spark: SparkSession, parts: Sequence[str]) -> Dataset:
    if len(parts) == 2 and parts[0].lower() in _FORMATS:
        return Dataset(spark, parts[1], format=parts[0].lower())
    return Dataset(spark, table=".".join(map(sql_name, parts)))


def _index(number: int, written: Mapping[str, Any]) -> Index:
    """Names of types and parameters ignore case and underscores, as SQL's do."""
    wanted = _plain(written["type"])
    name = next((name for name in index_types() if _plain(name) == wanted), None)
    if name is None:
        raise _WrongIndex(number, f"unknown index type; the index types are {', '.join(sorted(index_types()))}")
    cls: Callable[..., Index] = index_class(name)
    parameters = {_plain(parameter): parameter for parameter in inspect.signature(cls).parameters}
    named = {parameters.get(_plain(key), key): value for key, value in written["named"].items()}
    try:
        return cls(*written["arguments"], **named)
    except (IndexDefinitionError, TypeError, ValueError) as error:
        raise _WrongIndex(number, str(error)) from None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _counts(result: RefreshResult) -> Rows:
    counted = (result.added, result.updated, result.removed, result.unchanged)
    return [[*(int(count) for count in counted), len(result.failed)]]


def _create(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    return _counts(dataset.ensure_indexes(*indexes) if statement["lenient"] else dataset.create_indexes(*indexes))


def _refresh(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    return _counts(dataset.refresh())


def _drop(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    if statement["lenient"] and not dataset.is_indexed():
        return []
    dataset.drop_indexes(*indexes) if indexes else dataset.drop_indexes(all=True)
    return []


def _show(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    return [[f"{row.type}({', '.join(row.columns)})"] for row in dataset.describe().collect()]


def _describe(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    found = dataset.describe().collect()
    rows: Rows = []
    for row in found:
        params = row.params if row.protection == "plain" else {**row.params, "protect": row.protection}
        rows.append([row.type, ", ".join(row.columns), _shown(params), row.objects, row.metadata_bytes])
    return rows


def _shown(params: Mapping[str, str]) -> str:
    return ", ".join(f"{name} => {value}" for name, value in sorted(params.items()))


def _optimize(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    dataset.optimize()
    return []


def _health(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    found = dataset.health()
    counts = (found.stale, found.missing, found.gone, len(found.failed))
    return [[found.objects, found.covered, float(found.coverage), *counts]]


def _advise(dataset: Dataset, indexes: list[Index], statement: Statement) -> Rows:
    options = {"budget": _BUDGET, **statement["options"]}
    if isinstance(options.get("log"), str):
        options["log"] = [options["log"]]
    found = advise(dataset._spark, dataset, **options)
    rows: Rows = [
        [one.action, str(one.index), one.bytes, one.gain.share, one.gain.low, one.gain.high, None]
        for one in found.table
    ]
    if found.reason is not None:
        rows.append(["none", *[None] * 5, found.reason])
    return rows


_ACTIONS: Final[Mapping[str, Callable[[Dataset, list[Index], Statement], Rows]]] = {
    "create": _create,
    "refresh": _refresh,
    "drop": _drop,
    "show": _show,
    "describe": _describe,
    "optimize": _optimize,
    "health": _health,
    "advise": _advise,
}
