"""The callback of the shim: one request of one scan in, the keys of the objects to skip out.

Whatever goes wrong here means *no skipping* for this scan: the reply says so, one warning names the reason, and the
report counts it. Only ``spark.es_skipping.strict`` makes the shim raise instead.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

from es_skipping.clauses.clause import KEEP
from es_skipping.predicates.codec import show
from es_skipping.reports.details import ScanDetail, details
from es_skipping.settings import Settings
from es_skipping.spark import reply
from es_skipping.spark.guard import Breaker, Budgets
from es_skipping.spark.query_log import query_log
from es_skipping.spark.registry import registry
from es_skipping.spark.session_store import session_store
from es_skipping.spark.verdict import Verdict, clause_for, indexes_of, read_filters
from es_skipping.stores.base import Answer

__all__ = ["answer"]


_log = logging.getLogger("es_skipping")
_breakers: defaultdict[str, Breaker] = defaultdict(Breaker)
_budgets = Budgets()
_warned: set[str] = set()
_warned_lock = threading.Lock()


def answer(request: str | bytes) -> bytes:
    """Answer one request of the shim (``docs/decisions/0001-bridge-protocol.md``); never raises.

    Parameters
    ----------
    request
        UTF-8 JSON.

    Returns
    -------
    bytes
        The reply.
    """
    start = time.perf_counter()
    scan = "?"
    read: dict[str, Any] | None = None
    try:
        read = json.loads(request)
        assert read is not None
        scan = str(read["scan"])
        if read["v"] != reply.PROTOCOL:
            raise ValueError(f"the shim speaks version {read['v']} of the protocol, this package {reply.PROTOCOL}")
        told, detail = _answer(read, scan)
    except Exception as error:
        reason = _reason(error)
        _warn_once(f"data skipping is off for a scan, which reads all its files: {reason}")
        told, detail = reply.failed(reason), ScanDetail(scan, reason=reason, failed=True)
    detail = _timed(detail, time.perf_counter() - start)
    details.remember(detail)
    if read is not None:
        query_log.note(read, detail)
    return told


def _answer(request: dict[str, Any], scan: str) -> tuple[bytes, ScanDetail]:
    conf = request["settings"]
    settings = Settings(conf)
    store = session_store(conf)
    query = (str(request.get("session")), str(request["execution"])) if request.get("execution") else None
    breaker = _breakers[store.url].attempt(settings["breaker.failures"], settings["breaker.pause"])
    with _budgets.spend(query, settings["query.budget"]) as left, breaker:
        deadline = time.monotonic() + min(settings["store.timeout"], left)
        datasets = registry.find(store, request["roots"], request.get("table"), settings["registry.lifetime"])
        if not datasets:
            believed = 0.0 if settings["queryLog.enabled"] else registry.remains(store, settings["registry.lifetime"])
            return reply.unindexed(believed), ScanDetail(scan, reason="not indexed", store=store.url)
        names = ", ".join(dataset.entry.definition.id for dataset in datasets)
        answers: list[list[Answer]] = []
        verdicts: list[Verdict] = []
        texts: list[str] = []
        for trees in request["filters"]:
            predicate = read_filters(trees, str(request.get("session")))
            texts.append(show(predicate))
            found: list[Answer] = []
            for dataset in datasets:
                verdict = clause_for(dataset, predicate, request)
                verdicts.append(verdict)
                if verdict.clause != KEEP:
                    left_now = max(deadline - time.monotonic(), 0.001)
                    answer = store.lookup(dataset.entry, verdict.clause, timeout=left_now)
                    found += [answer] if answer.skipped else []
            answers.append(found)
    indexes = tuple(dict.fromkeys(id for verdict in verdicts for id in indexes_of(verdict.clause)))
    unusable = tuple(dict.fromkeys(pair for verdict in verdicts for pair in verdict.unusable))
    if unusable:
        _warn_once(f"data skipping of {names} is less than it could be: {_why_kept(unusable)}")
    reason = None
    if not any(answers):
        reason = "no object could be ruled out" if any(v.clause != KEEP for v in verdicts) else _why_kept(unusable)
    detail = ScanDetail(
        scan,
        names,
        reason,
        indexes=indexes,
        filter=" | ".join(texts),
        clause=" | ".join(str(verdict.clause) for verdict in verdicts),
        unusable=unusable,
        store=store.url,
    )
    return (reply.skip(answers), detail) if any(answers) else _nothing(detail)


def _why_kept(unusable: tuple[tuple[str, str], ...]) -> str:
    if unusable:
        return "; ".join(f"{index} is not used: {reason}" for index, reason in unusable)
    return "no index understands the filter"


def _nothing(detail: ScanDetail) -> tuple[bytes, ScanDetail]:
    return reply.nothing(detail.reason or ""), detail


def _timed(detail: ScanDetail, seconds: float) -> ScanDetail:
    return replace(detail, seconds=seconds)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _warn_once(text: str) -> None:
    """One warning per text in this process; numbers in it (seconds, ports) do not make it another text."""
    key = "".join("#" if char.isdigit() else char for char in text)
    with _warned_lock:
        if key in _warned:
            return
        _warned.add(key)
    _log.warning("%s", text)
