"""Explaining a DataFrame that was not executed: plan it, ask what each scan would ask, and keep the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from es_skipping.clauses.clause import KEEP, SKIP, Clause, conjunction
from es_skipping.clauses.merge import Trace
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import And, Or
from es_skipping.reports.clause_text import clause_text
from es_skipping.reports.driver import NOT_ENABLED, Driver, PlannedScan, session_of
from es_skipping.reports.explanation import DatasetExplanation, Explanation, NodeExplanation, ScanExplanation
from es_skipping.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.predicates.types import DataType
    from es_skipping.spark.registry import IndexedDataset
    from es_skipping.stores.base import Answer, MetadataStore

__all__ = ["explain"]

_NODES = 200
"""So many nodes of one filter are shown."""


def explain(df: DataFrame, *, detail: bool = False) -> Explanation:
    """Why a query would skip what it would, without running it.

    The query is planned once more, from its analysed form; nothing that the DataFrame itself remembers is touched.
    Each scan's files are listed and the metadata store is asked, as the query would, whether or not skipping is
    enabled in the session. With adaptive execution it is the plan before the first stage that is explained: what
    dynamic pruning leaves out later, and filters that only appear then, are not in it.

    Parameters
    ----------
    df
        Any DataFrame.
    detail
        Also ask, for each index, how many objects it would rule out alone; this can take several requests.

    Returns
    -------
    Explanation
        It prints in a terminal and shows itself in a notebook.

    Raises
    ------
    EsSkippingError
        It is no DataFrame, or the session has no driver that this process can ask.

    Examples
    --------
    >>> print(esk.explain(spark.table("events").where("ts > '2026-01-01' AND upper(city) = 'ULM'")))   # doctest: +SKIP
    Scan of spark_catalog.default.events
      19 of 20 objects would be skipped (95 %), 19.0 KiB of 20.0 KiB
      dataset  events-3f2a
      filter   ts > TIMESTAMP '2026-01-01 00:00:00Z' AND upper(city) = 'ULM'
        AND                                          →  the parts below, joined by AND
          ts > TIMESTAMP '2026-01-01 00:00:00Z'      →  minmax(ts): a value > TIMESTAMP '2026-01-01 00:00:00Z'
          upper(city) = 'ULM'                        →  nothing: no index on upper(city)
      asked    minmax(ts): a value > TIMESTAMP '2026-01-01 00:00:00Z'
      query    of https://es:9200
        GET /es-skipping-objects-events-3f2a/_search
        ...
    """
    from es_skipping.spark.session import is_enabled

    spark = session_of(df)
    scans = tuple(
        _explain_scan(scan.request | _settings(spark, scan.request), scan, detail)
        for scan in Driver(spark).planned_scans(df)
    )
    note = None if is_enabled(spark) else NOT_ENABLED
    return Explanation(scans, note)


def _settings(spark: SparkSession, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request's settings, with those that only an enabled session sends."""
    from es_skipping.spark.bridge import session_settings
    from es_skipping.spark.built_with import RELEVANT_SETTINGS
    from es_skipping.spark.session_store import WAREHOUSE

    settings = request["settings"]
    if WAREHOUSE not in settings:
        settings = session_settings(spark, (*RELEVANT_SETTINGS, WAREHOUSE)) | settings
    return {"settings": settings}


def _explain_scan(request: Mapping[str, Any], scan: PlannedScan, detail: bool) -> ScanExplanation:
    counts: dict[str, Any] = {
        "table": request.get("table"),
        "roots": tuple(request["roots"]),
        "objects_total": request["objects"],
        "bytes_total": request["bytes"],
    }
    url: str | None = None
    try:
        from es_skipping.spark.registry import registry
        from es_skipping.spark.session_store import session_store

        conf = request["settings"]
        settings = Settings(conf)
        store = session_store(conf)
        url = store.url
        datasets = registry.find(store, request["roots"], request.get("table"), settings["registry.lifetime"])
        if not datasets:
            return ScanExplanation(**counts, objects_skipped=0, bytes_skipped=0, store=url, reason="not indexed")
        if not any(request["filters"]):
            return ScanExplanation(
                **counts, objects_skipped=0, bytes_skipped=0, store=url, reason="the scan has no filter"
            )
        parts, answers = _ask(store, datasets, request, detail)
        objects, bytes_ = scan.skipped(answers) if any(answers) else (0, 0)
    except Exception as error:  # what a query would fail open on is what is to be explained
        reason = f"{type(error).__name__}: {error}"
        return ScanExplanation(**counts, objects_skipped=0, bytes_skipped=0, store=url, reason=reason)
    return ScanExplanation(
        **counts,
        objects_skipped=objects,
        bytes_skipped=bytes_,
        datasets=tuple(parts),
        store=url,
        reason=None if objects else _why_nothing(parts, bool(answers and any(answers))),
    )


def _why_nothing(parts: list[DatasetExplanation], ruled_out: bool) -> str:
    if ruled_out:
        return (
            "the objects ruled out are not among those listed: they changed since, or Spark's own pruning left them out"
        )
    if any(part.clause for part in parts):
        return "no object could be ruled out"
    unusable = dict.fromkeys(pair for part in parts for pair in part.unusable)
    if unusable:
        return "; ".join(f"{index} is not used: {reason}" for index, reason in unusable)
    return "no index understands the filter"


def _ask(
    store: MetadataStore, datasets: list[IndexedDataset], request: Mapping[str, Any], detail: bool
) -> tuple[list[DatasetExplanation], list[list[Answer]]]:
    from es_skipping.spark.verdict import clause_for, read_filters

    timeout = Settings(request["settings"])["store.timeout"]
    parts: list[DatasetExplanation] = []
    answers: list[list[Answer]] = []
    for trees in request["filters"]:
        predicate = read_filters(trees, str(request.get("session")))
        found: list[Answer] = []
        for dataset in datasets:
            entry = dataset.entry
            types = {index.id: index.value_type for index in entry.definition.indexes}
            verdict = clause_for(dataset, predicate, request, traced=True)
            asked: dict[str, Any] = {}
            if verdict.clause != KEEP:
                query = store.explain(entry, verdict.clause)
                answer = store.lookup(entry, verdict.clause, timeout=timeout, detail=detail)
                found += [answer] if answer.skipped else []
                asked = {
                    "clause": clause_text(verdict.clause, types),
                    "query": query.text,
                    "notes": query.notes,
                    "by_index": dict(answer.by_index),
                }
            nodes = tuple(_nodes(verdict.trace, types)) if verdict.trace is not None else ()
            parts.append(
                DatasetExplanation(entry.definition.id, show(predicate), nodes, unusable=verdict.unusable, **asked)
            )
        answers.append(found)
    return parts, answers


def _nodes(trace: Trace, types: Mapping[str, DataType]) -> Iterator[NodeExplanation]:
    """The filter from the root down, in the order in which it reads."""
    stack = [(0, trace)]
    shown = 0
    while stack:
        depth, at = stack.pop()
        shown += 1
        if shown > _NODES:
            yield NodeExplanation(0, "...", reason=f"only {_NODES} nodes are shown")
            return
        yield _node(depth, at, types)
        stack.extend((depth + 1, child) for child in reversed(at.children))


def _node(depth: int, trace: Trace, types: Mapping[str, DataType]) -> NodeExplanation:
    connective = {And: "AND", Or: "OR"}.get(trace.node.__class__)
    text = connective or trace.text
    failed = "; ".join(f"index {index} failed: {error}" for index, error in trace.errors)
    if trace.clause == KEEP:
        return NodeExplanation(depth, text, reason=trace.reason or failed or None)
    became = _became(connective, trace, types)
    return NodeExplanation(depth, text, f"{became} ({failed})" if failed else became)


def _became(connective: str | None, trace: Trace, types: Mapping[str, DataType]) -> str:
    if trace.clause == SKIP:
        return "no row can satisfy it: every object is skipped"
    if connective is None:
        return clause_text(trace.clause, types)
    own: Clause = conjunction(clause for _, clause in trace.labels)
    below = f"the parts below, joined by {connective}"
    if own == KEEP:
        return below
    return clause_text(own, types) if not _adds(trace) else f"{clause_text(own, types)}, AND {below}"


def _adds(trace: Trace) -> bool:
    """Whether the children bring anything besides the node's own labels."""
    kept = [child.clause == KEEP for child in trace.children]
    return not (all(kept) if isinstance(trace.node, And) else any(kept))
