"""The service that the shim calls: one scan's request in, the keys of the objects to skip out.

Any failure here means *no skipping* for this scan: the reply says so, one warning names the reason, and the report
counts it. With ``spark.es_skipping.strict`` the shim raises instead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

from es_skipping.catalog import DatasetEntry
from es_skipping.clauses.clause import Clause, indexes_of
from es_skipping.errors import EsSkippingError
from es_skipping.lookup import reply
from es_skipping.lookup.details import LoggedFilter, ScanDetail, ScanDetails
from es_skipping.lookup.functions import DeclaredFunctions
from es_skipping.lookup.guard import Breaker, Budgets
from es_skipping.lookup.host import Host
from es_skipping.lookup.key_ranges import KeyMetadata, implied_by_joins
from es_skipping.lookup.lookup import Lookup, look_up
from es_skipping.lookup.payoff import Payoff
from es_skipping.lookup.query_log import QueryLog, is_logged
from es_skipping.lookup.registry import IndexedDataset, Registry
from es_skipping.lookup.renames import as_indexed
from es_skipping.lookup.request import ScanRequest
from es_skipping.lookup.stores import SessionStores
from es_skipping.lookup.turns import Turns
from es_skipping.lookup.withheld import Withheld
from es_skipping.stores.base import MetadataStore

__all__ = ["LookupService", "reply_to"]

_log = logging.getLogger("es_skipping")


class LookupService:
    """Answers the look-ups of all sessions of one JVM. Safe to use from several threads.

    Parameters
    ----------
    host
        The process that the service runs in.
    turns
        Limits how many look-ups run at once, and is fair to sessions; None for no limit.
    launched
        The application's launch settings, if sessions may belong to others than who launched it; see `SessionStores`.

    Attributes
    ----------
    functions
        The functions that sessions declared.
    registry
        The cache of indexed datasets.
    details
        The latest look-ups' parts of the reports.
    query_log
        Writes look-ups to the store, for sessions that turn it on.
    payoff
        What logged look-ups cost and saved.
    breakers
        One per store; a breaker opens after repeated failures.
    on_use
        Called with the request, the store's URL and the entry of each dataset that a look-up uses; None for nothing. It
        must return at once and never raise.
    """

    def __init__(self, host: Host, turns: Turns | None = None, launched: Mapping[str, str] | None = None) -> None:
        self._turns = turns
        self.functions = DeclaredFunctions()
        self.registry = Registry(host.forget_unindexed)
        self.details = ScanDetails()
        self.payoff = Payoff()
        self.query_log = QueryLog(host.records, self.store, host.application, self.payoff.note)
        self.breakers: defaultdict[MetadataStore, Breaker] = defaultdict(Breaker)
        self.on_use: Callable[[ScanRequest, str, DatasetEntry], None] | None = None
        self._stores = SessionStores(host.files, launched)
        self._budgets = Budgets()
        self._key_metadata = KeyMetadata()
        self._warned: set[str] = set()
        self._warned_lock = threading.Lock()

    def store(self, conf: Mapping[str, str]) -> MetadataStore:
        """The metadata store that a session's configuration names.

        Raises
        ------
        SettingError
            The URL or a credential cannot be used.
        """
        return self._stores.store(conf)

    def answer(self, text: str | bytes) -> bytes:
        """Answer one request of the shim (``docs/decisions/0001-bridge-protocol.md``); never raises.

        Parameters
        ----------
        text
            UTF-8 JSON.

        Returns
        -------
        bytes
            The reply.
        """
        start = time.perf_counter()
        request: ScanRequest | None = None
        try:
            request = ScanRequest.parse(text)
            with self._turn(request):
                answered, detail = self._answer(request)
        except Exception as error:
            reason = self._why(error, request)
            self._warn_once(f"this scan reads all its files, because the look-up failed: {reason}")
            answered = reply.failed(reason)
            detail = ScanDetail("?" if request is None else request.scan, reason=reason, failed=True)
            if request is not None and self._knows_no_protection(request):
                detail = replace(detail, logged=LoggedFilter(trees=list(request.filters)))
        detail = replace(detail, seconds=time.perf_counter() - start)
        self.details.remember(detail)
        if request is not None:
            self.query_log.note(request, detail)
        return answered

    def _why(self, error: Exception, request: ScanRequest | None) -> str:
        """Why a look-up failed, as logs get it: the text of an error that nobody foresaw may quote the filter."""
        kind = type(error).__name__
        if isinstance(error, EsSkippingError) or request is None or self._knows_no_protection(request):
            return f"{kind}: {error}"
        return f"{kind} (withheld: an index may be protected)"

    def _knows_no_protection(self, request: ScanRequest) -> bool:
        """Whether the request's store was read before, and had no protected index then."""
        try:
            read = self.registry.last_read(self._stores.store(request.settings, request.parsed_settings))
        except Exception:
            return False
        return read is not None and not any(Withheld.from_log(one.entry.definition).indexes for one in read)

    def _turn(self, request: ScanRequest) -> AbstractContextManager[None]:
        if self._turns is None:
            return nullcontext()
        return self._turns.turn(request.session, request.parsed_settings["store.timeout"])

    def _answer(self, request: ScanRequest) -> tuple[bytes, ScanDetail]:
        settings = request.parsed_settings
        store = self._stores.store(request.settings, settings)
        query = (request.session, request.execution) if request.execution else None
        breaker = self.breakers[store].attempt(settings["breaker.failures"], settings["breaker.pause"])
        with self._budgets.spend(query, settings["query.budget"]) as budget, breaker:
            timeout, lifetime = min(settings["store.timeout"], budget), settings["registry.lifetime"]
            deadline: float = time.monotonic() + timeout
            datasets = self.registry.find(store, request.roots, request.table, lifetime, timeout, request.format)
            if not datasets:
                logged = is_logged(settings)
                believed = 0.0 if logged else self.registry.remains(store, lifetime)
                # A protected dataset may be inside of what is read, or have been protected until a moment ago.
                trees = list(request.filters) if logged and self._knows_no_protection(request) else []
                return reply.unindexed(believed), ScanDetail(
                    request.scan, reason="not indexed", store=store.url, logged=LoggedFilter(trees=trees)
                )

            def left() -> float:
                return deadline - time.monotonic()

            implied = implied_by_joins(
                request,
                datasets,
                self.functions.of(request.session),
                lambda one: self.registry.find(store, one.roots, None, lifetime, left(), one.format),
                self._key_metadata,
                left,
            )
            found = look_up(
                request,
                datasets,
                self.functions,
                left,
                implied=implied,
                unpaid=_unpaid(store, self.payoff.leaves_out) if is_logged(settings) else _paid,
            )
        if self.on_use is not None:
            for dataset in found.datasets:
                self.on_use(request, store.url, dataset.entry)
        detail = _detail(request, store, found)
        if is_logged(settings) and (not request.induced or self._knows_no_protection(request)):
            detail = replace(detail, logged=_logged(request, found))
        if found.why_unfit:  # the store itself warns about hidden metadata
            self._warn_once(f"some indexes of {detail.dataset} cannot be used: {found.why_unfit}")
        return reply_to(found), detail

    def explain(self, request: ScanRequest, *, detail: bool = False) -> Lookup:
        """Look a request up with a trace, outside every query's budget.

        Raises
        ------
        EsSkippingError
            Any error that makes a query fail open.
        """
        settings = request.parsed_settings
        store = self._stores.store(request.settings, settings)
        timeout: float = settings["store.timeout"]
        lifetime: float = settings["registry.lifetime"]
        datasets = self.registry.find(store, request.roots, request.table, lifetime, timeout, request.format)
        unpaid = _unpaid(store, self.payoff.why_not) if is_logged(settings) else _paid
        return look_up(request, datasets, self.functions, lambda: timeout, traced=True, detail=detail, unpaid=unpaid)

    def _warn_once(self, text: str) -> None:
        """Warn once per text; texts that differ only in numbers (seconds, ports) count as one."""
        key = "".join("#" if char.isdigit() else char for char in text)
        with self._warned_lock:
            if key in self._warned:
                return
            self._warned.add(key)
        _log.warning("%s", text)


_WhyNot: TypeAlias = Callable[[IndexedDataset, Clause], str | None]


def _paid(dataset: IndexedDataset, clause: Clause) -> None:
    return None


def _unpaid(store: MetadataStore, why: Callable[[str, str, str, Iterable[str]], str | None]) -> _WhyNot:
    """Why it does not pay to ask a clause, as far as a session's log tells."""

    def of(dataset: IndexedDataset, clause: Clause) -> str | None:
        return why(store.url, dataset.entry.definition.id, dataset.entry.snapshot, indexes_of(clause))

    return of


def reply_to(found: Lookup) -> bytes:
    """The reply to the shim that a look-up leads to."""
    guarantee = found.guarantee
    if guarantee is not None:
        return reply.skip_beyond(found.answers, [one.key for one in guarantee.guarantors], guarantee.answer)
    if found.rules_out_row_groups or found.has_unused_row_groups:
        return reply.skip_row_groups(found.answers, found.row_groups or [()] * len(found.parts))
    return reply.skip(found.answers) if found.rules_out else reply.nothing(found.reason or "")


def _detail(request: ScanRequest, store: MetadataStore, found: Lookup) -> ScanDetail:
    return ScanDetail(
        request.scan,
        ", ".join(dataset.entry.definition.id for dataset in found.datasets),
        found.reason,
        indexes=found.indexes,
        filter=" | ".join(dict.fromkeys(part.filter for part in found.flat)),
        clause=" | ".join(part.asked for part in found.flat),
        unusable=found.unusable,
        row_groups=found.known_row_groups,
        store=store.url,
        elements=found.elements,
        induced_by=tuple(
            dict.fromkeys([*(by for part in found.flat for by in part.verdict.induced_by), *found.implied_by])
        ),
    )


def _logged(request: ScanRequest, found: Lookup) -> LoggedFilter:
    """What the query log gets: no condition on a column with a protected index.

    Induced conditions hold values of other datasets. They are logged only if no dataset of the store is protected.
    """
    trees: list[Any] = list(request.filters)
    withheld = {
        id(dataset): found.from_log(dataset, as_indexed(request, dataset.entry.definition.schema)[1])
        for dataset in found.datasets
    }
    for dataset in found.datasets:
        trees = withheld[id(dataset)].trees(trees)
    parts = [(part, withheld[id(part.dataset)]) for part in found.flat]
    return LoggedFilter(
        " | ".join(dict.fromkeys(hiding.filter(part.predicate) for part, hiding in parts)),
        " | ".join(hiding.clause(part.verdict.clause, part.dataset) for part, hiding in parts),
        trees,
        tuple(dict.fromkeys(pair for part, hiding in parts for pair in hiding.unusable(part.unusable))),
    )
