"""The callback of the shim: one request of one scan in, the keys of the objects to skip out.

Whatever goes wrong here means *no skipping* for this scan: the reply says so, one warning names the reason, and the
report counts it. Only ``spark.es_skipping.strict`` makes the shim raise instead.
"""

from __future__ import annotations

import json
import logging
import struct
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any, Final

from es_skipping.clauses.clause import KEEP
from es_skipping.predicates.codec import show
from es_skipping.reports.details import ScanDetail, details
from es_skipping.settings import Settings
from es_skipping.spark.guard import Breaker, Budgets
from es_skipping.spark.query_log import query_log
from es_skipping.spark.registry import registry
from es_skipping.spark.session_store import session_store
from es_skipping.spark.verdict import Verdict, clause_for, indexes_of, read_filters
from es_skipping.stores.base import KEY_BYTES

__all__ = ["PROTOCOL", "answer"]

PROTOCOL: Final = 1
_NOTHING, _INLINE, _FILE, _FAILED = range(4)
_INLINE_BYTES: Final = 1 << 20
"""Above this the keys go by a local file: py4j would carry them as base64 text."""

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
        if read["v"] != PROTOCOL:
            raise ValueError(f"the shim speaks version {read['v']} of the protocol, this package {PROTOCOL}")
        reply, detail = _answer(read, scan)
    except Exception as error:
        reason = _reason(error)
        _warn_once(f"data skipping is off for a scan, which reads all its files: {reason}")
        reply, detail = _text(_FAILED, reason), ScanDetail(scan, reason=reason, failed=True)
    detail = _timed(detail, time.perf_counter() - start)
    details.remember(detail)
    if read is not None:
        query_log.note(read, detail)
    return reply


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
            return _nothing(ScanDetail(scan, reason="not indexed", store=store.url))
        names = ", ".join(dataset.entry.definition.id for dataset in datasets)
        keys: list[bytes] = []
        verdicts: list[Verdict] = []
        texts: list[str] = []
        for trees in request["filters"]:
            predicate = read_filters(trees)
            texts.append(show(predicate))
            found = b""
            for dataset in datasets:
                verdict = clause_for(dataset, predicate, request)
                verdicts.append(verdict)
                if verdict.clause != KEEP:
                    left_now = max(deadline - time.monotonic(), 0.001)
                    found += store.lookup(dataset.entry, verdict.clause, timeout=left_now).skip
            keys.append(found)
    indexes = tuple(dict.fromkeys(id for verdict in verdicts for id in indexes_of(verdict.clause)))
    unusable = tuple(dict.fromkeys(pair for verdict in verdicts for pair in verdict.unusable))
    if unusable:
        _warn_once(f"data skipping of {names} is less than it could be: {_why_kept(unusable)}")
    reason = None
    if not any(keys):
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
    return (_skip(keys), detail) if any(keys) else _nothing(detail)


def _why_kept(unusable: tuple[tuple[str, str], ...]) -> str:
    if unusable:
        return "; ".join(f"{index} is not used: {reason}" for index, reason in unusable)
    return "no index understands the filter"


def _nothing(detail: ScanDetail) -> tuple[bytes, ScanDetail]:
    return _text(_NOTHING, detail.reason or ""), detail


def _text(kind: int, text: str) -> bytes:
    return bytes((PROTOCOL, kind)) + text.encode("utf-8", "replace")


def _skip(keys: list[bytes]) -> bytes:
    body = b"".join(struct.pack(">I", len(part) // KEY_BYTES) + part for part in keys)
    if len(body) <= _INLINE_BYTES:
        return bytes((PROTOCOL, _INLINE)) + body
    with tempfile.NamedTemporaryFile(prefix="es-skipping-", suffix=".keys", delete=False) as file:
        file.write(body)
    return _text(_FILE, file.name)


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
