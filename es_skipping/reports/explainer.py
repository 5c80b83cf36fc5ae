"""Explains a DataFrame without running it: plans it, does each scan's look-up, and keeps the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from es_skipping.clauses.clause import KEEP, SKIP, Clause, conjunction
from es_skipping.clauses.merge import Trace
from es_skipping.clauses.text import clause_text
from es_skipping.indexes.registry import readable_id
from es_skipping.lookup.lookup import Part
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.withheld import Withheld
from es_skipping.predicates.tree import And, Or
from es_skipping.reports.driver import NOT_ENABLED, Driver, PlannedScan, session_of
from es_skipping.reports.explanation import DatasetExplanation, Explanation, NodeExplanation, ScanExplanation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.predicates.types import DataType

__all__ = ["explain"]

_MAX_NODES_SHOWN: Final = 200
"""Most nodes of one filter that are shown."""
_NOT_LISTED: Final = (
    "the objects ruled out are not in Spark's listing: they changed since the build, or Spark's own pruning left them "
    "out"
)


def explain(df: DataFrame, *, detail: bool = False) -> Explanation:
    """Explain what a query would skip and why, without running it.

    This plans the query again from its analysed form, without touching the DataFrame's cached plan. Then it lists each
    scan's files and asks the metadata store as the query would, even if skipping is off in the session. It names the
    joins whose keys are only known when the query runs. With adaptive execution it explains the plan before the first
    stage, so it misses later dynamic pruning and later filters.

    Parameters
    ----------
    df
        Any DataFrame.
    detail
        Also count the objects that each index alone rules out; this can take several requests.

    Returns
    -------
    Explanation
        Readable in a terminal and in a notebook.

    Raises
    ------
    EsSkippingError
        The argument is not a DataFrame, or this process cannot reach the session's driver.

    Examples
    --------
    >>> print(esk.explain(spark.table("events").where("ts > '2026-01-01' AND upper(city) = 'ULM'")))   # doctest: +SKIP
    Scan of spark_catalog.default.events
      19 of 20 objects would be skipped (95 %), 19.0 KiB of 20.0 KiB
      dataset  events-3f2a
      filter   ts > TIMESTAMP '2026-01-01 00:00:00Z' AND upper(city) = 'ULM'
        AND                                          →  the parts below, joined by AND
          ts > TIMESTAMP '2026-01-01 00:00:00Z'      →  MinMax(ts): a value > TIMESTAMP '2026-01-01 00:00:00Z'
          upper(city) = 'ULM'                        →  nothing: no index on upper(city)
      asked    MinMax(ts): a value > TIMESTAMP '2026-01-01 00:00:00Z'
      query    of https://es:9200
        GET /es-skipping-objects-events-3f2a/_search
        ...
    """
    from es_skipping.spark.session import is_enabled

    spark = session_of(df)
    scans = tuple(_explain_scan(spark, scan, detail) for scan in Driver(spark).planned_scans(df))
    note = None if is_enabled(spark) else NOT_ENABLED
    return Explanation(scans, note)


def _request(spark: SparkSession, request: ScanRequest) -> ScanRequest:
    """The request with the settings that only an enabled session sends."""
    from es_skipping.lookup.built_with import RELEVANT_SETTINGS
    from es_skipping.lookup.stores import WAREHOUSE
    from es_skipping.spark.bridge import session_settings

    if WAREHOUSE in request.settings:
        return request
    settings = session_settings(spark, (*RELEVANT_SETTINGS, WAREHOUSE))
    return replace(request, settings=settings | dict(request.settings))


def _explain_scan(spark: SparkSession, scan: PlannedScan, detail: bool) -> ScanExplanation:
    from es_skipping.lookup.service import reply_to
    from es_skipping.spark.services import service_of

    request = _request(spark, scan.request)
    store, objects, bytes_, groups, known = None, 0, 0, 0, 0
    parts: tuple[DatasetExplanation, ...] = ()
    induced = scan.induced_by
    try:
        service = service_of(spark)
        store = service.store(request.settings).url
        found = service.explain(request, detail=detail)
        if not found.datasets:
            reason = found.reason
        elif not any(request.filters) and request.first is None:
            reason = "the scan has no filter"
        else:
            parts = tuple(map(_explained, found.flat))
            known = found.known_row_groups
            induced = tuple(dict.fromkeys([*induced, *found.elements]))
            objects, bytes_, groups = scan.skipped(reply_to(found))
            reason = None if objects or groups else found.reason or _NOT_LISTED
    except Exception as error:  # explain the error on which a query would fail open
        reason = f"{type(error).__name__}: {error}"
    return ScanExplanation(
        table=request.table,
        roots=request.roots,
        objects_total=request.objects,
        bytes_total=request.size,
        objects_skipped=objects,
        bytes_skipped=bytes_,
        datasets=parts,
        store=store,
        reason=reason,
        table_format=None if request.snapshot is None else request.format,
        snapshot=request.snapshot,
        row_groups_total=known,
        row_groups_skipped=groups,
        induced_by=induced,
    )


def _explained(part: Part) -> DatasetExplanation:
    definition, verdict = part.dataset.entry.definition, part.verdict
    withheld = part.withheld
    types = {index.id: labeller.value_type for index, labeller in part.dataset.labellers}
    asked: dict[str, Any] = {}
    if part.answer is not None and part.query is not None:
        listed = {f"{readable_id(index)} is not used: {reason}" for index, reason in part.unusable}
        asked = {
            "clause": part.asked,
            "query": part.query.text,
            "notes": (
                *(note for note in part.query.notes if note not in listed),
                *(() if part.unpaid is None else (f"queries of this session do not ask it: {part.unpaid}",)),
            ),
            "by_index": dict(part.answer.by_index),
        }
    nodes = tuple(_nodes(verdict.trace, types, withheld)) if verdict.trace is not None else ()
    return DatasetExplanation(definition.id, part.filter, nodes, unusable=withheld.unusable(part.unusable), **asked)


def _nodes(trace: Trace, types: Mapping[str, DataType], withheld: Withheld) -> Iterator[NodeExplanation]:
    """The filter's nodes from the root down, in reading order."""
    stack = [(0, trace)]
    shown = 0
    while stack:
        depth, at = stack.pop()
        shown += 1
        if shown > _MAX_NODES_SHOWN:
            yield NodeExplanation(0, "...", reason=f"only {_MAX_NODES_SHOWN} nodes are shown")
            return
        if withheld.hides(at.node) and not isinstance(at.node, And | Or):
            yield NodeExplanation(depth, "a condition that is withheld", reason="the key of its index is missing here")
            continue
        yield _node(depth, at, types, withheld)
        stack.extend((depth + 1, child) for child in reversed(at.children))


def _node(depth: int, trace: Trace, types: Mapping[str, DataType], withheld: Withheld) -> NodeExplanation:
    connective = "AND" if isinstance(trace.node, And) else "OR" if isinstance(trace.node, Or) else None
    text = connective or trace.text
    failed = "; ".join(f"index {readable_id(index)} failed: {error}" for index, error in trace.errors)
    hidden = withheld.hides(trace.node)
    if trace.clause == KEEP:
        why = "an index failed at it (withheld)" if hidden and failed else trace.reason or failed or None
        return NodeExplanation(depth, text, reason=why)
    if hidden:
        return NodeExplanation(depth, text, f"the parts below, joined by {connective}")
    became = _became(connective, trace, types)
    return NodeExplanation(depth, text, f"{became} ({failed})" if failed else became)


def _became(connective: str | None, trace: Trace, types: Mapping[str, DataType]) -> str:
    if trace.clause == SKIP:
        return "no row can satisfy it: every object is skipped"
    if connective is None:
        return clause_text(trace.clause, types, readable_id)
    own: Clause = conjunction(clause for _, clause in trace.labels)
    below = f"the parts below, joined by {connective}"
    if own == KEEP:
        return below
    text = clause_text(own, types, readable_id)
    return f"{text}, AND {below}" if _adds(trace) else text


def _adds(trace: Trace) -> bool:
    """Whether the children add anything to the node's own labels."""
    kept = [child.clause == KEEP for child in trace.children]
    return not (all(kept) if isinstance(trace.node, And) else any(kept))
