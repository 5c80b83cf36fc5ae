"""The open views of a cluster. After an append a view is extended by the new documents, not opened anew."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from elasticsearch import ApiError, Elasticsearch

from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.stores.elasticsearch.answers import Deadline, KeysMissing, may_be_gone
from es_skipping.stores.elasticsearch.views import KEEP_ALIVE, View
from es_skipping.stores.selection import KeyTable, Selection, Selections

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.answers import Answers
    from es_skipping.stores.elasticsearch.bools import Query
    from es_skipping.stores.elasticsearch.state import State

__all__ = ["OpenView", "Views"]

_MAX_OPEN_VIEWS: Final = 16
_MIN_OLD_PER_NEW: Final = 10
"""A view is extended while at most one in this many ordinals is new; then it is opened anew."""


@dataclass(frozen=True)
class OpenView:
    """A view of a publication: one of an earlier publication, and one of the documents that were added since.

    Parameters
    ----------
    snapshot
        The publication.
    state, old
        An earlier publication, or this one, and its view.
    new
        The documents added since; None where there are none.
    """

    snapshot: str
    state: State
    old: View
    new: View | None = None

    def select(self, proof: Query, deadline: Deadline) -> Selection | Selections:
        """The objects for which this query proves that no row matches."""
        if self.new is None:
            return self.old.select(proof, deadline)
        return Selections((self.old.select(proof, deadline), self.new.select(proof, deadline)))

    @property
    def views(self) -> tuple[View, ...]:
        return (self.old,) if self.new is None else (self.old, self.new)


class Views:
    """The views of one cluster, by generation. Safe to use from several threads.

    A view that is replaced stays open until the last look-up that asks it is done.

    Parameters
    ----------
    client
        With the deadline of a look-up.
    seconds
        How long the opening of a view may take. A look-up waits for it no longer than its own deadline; the opening
        goes on without it, so that a dataset whose view takes longer to open than a look-up may take is asked soon all
        the same.
    """

    def __init__(self, client: Elasticsearch, answers: Answers, seconds: float) -> None:
        self._client = client
        self._answers = answers
        self._seconds = seconds
        self._lock = threading.Lock()
        self._views: OrderedDict[str, OpenView] = OrderedDict()
        self._opening: dict[str, Future[None]] = {}
        self._users: dict[View, int] = {}
        """Of each open view: the look-ups and openings that use it, and one for the view that is kept."""

    @contextlib.contextmanager
    def view(self, state: State, deadline: Deadline) -> Iterator[OpenView]:
        """The view of what is published; opened where there is none, or one of another publication.

        It stays open as long as the body runs.

        Raises
        ------
        StoreUnavailable
            It is still being opened at the deadline. A later look-up finds it, or goes on waiting.
        """
        view = self._used(state, deadline)
        try:
            yield view
        finally:
            self._leave(view)

    def _used(self, state: State, deadline: Deadline) -> OpenView:
        name = state.snapshot
        while True:  # again where a view was replaced before who waited for it saw it
            with self._lock:
                view = self._views.get(state.generation)
                if view is not None and view.snapshot == name:
                    self._views.move_to_end(state.generation)
                    self._use(view)
                    return view
                opening = self._opening.get(name)
                if opening is None:
                    opening = Future()
                    self._opening[name] = opening
                    _start(self._open, state, opening)
            if not wait([opening], deadline.left()).done:
                raise StoreUnavailable(f"the view of {state.entry.objects:,} objects is still being opened")
            opening.result()

    def select(self, state: State, proof: Query, deadline: Deadline) -> Selection | Selections:
        """The published objects for which this query proves that no row matches."""
        try:
            return self._select(state, proof, deadline)
        except ApiError as error:  # the view was not used for long, its node is away, or its index was restored
            if not may_be_gone(error):
                raise
            return self._select(state, proof, deadline)

    def _select(self, state: State, proof: Query, deadline: Deadline) -> Selection | Selections:
        with self.view(state, deadline) as view:
            try:
                return view.select(proof, deadline)
            except ApiError as error:
                if may_be_gone(error):
                    self._drop(state.generation, view)
                raise

    def table(self, state: State, deadline: Deadline) -> KeyTable:
        """The published documents that the server shows at this moment, whatever views are open."""
        view = self._opened(state, deadline)
        self._close_pit(view.pit)
        return view.table

    def _open(self, state: State, opening: Future[None]) -> None:
        with self._lock:
            before = self._views.get(state.generation)
            self._use(before)
        try:
            fresh = self._fresh(before, state, Deadline(self._seconds))
        except BaseException as error:
            if isinstance(error, ApiError | KeysMissing) and may_be_gone(error):
                self._drop(state.generation, before)
            self._ended(state)
            opening.set_exception(error)
        else:
            self._keep(fresh, state.generation)
            self._ended(state)
            opening.set_result(None)
        self._leave(before)

    def _fresh(self, before: OpenView | None, state: State, deadline: Deadline) -> OpenView:
        extended = None if before is None else self._extended(before, state, deadline)
        return extended or OpenView(state.snapshot, state, self._opened(state, deadline))

    def _keep(self, fresh: OpenView, generation: str) -> None:
        """Keep a view for the next look-ups, in place of an earlier one."""
        with self._lock:
            self._use(fresh)
            gone = [self._views.pop(generation, None)]
            self._views[generation] = fresh
            if len(self._views) > _MAX_OPEN_VIEWS:
                gone.append(self._views.popitem(last=False)[1])
        self._leave(*gone)

    def _extended(self, before: OpenView, state: State, deadline: Deadline) -> OpenView | None:
        """The earlier view and what was added since; None unless objects were only added, and few.

        A document never changes, so the earlier view's answers stay right. Objects that were removed or replaced since
        would do no harm there either, but it would go on naming them.
        """
        old, first = before.state, before.state.next_ordinal
        added = state.next_ordinal - first
        if state.version < old.version or state.groups != old.groups or not 0 < added * _MIN_OLD_PER_NEW <= first:
            return None
        try:
            new = self._opened(state, deadline, first)
        except (ApiError, StoreError):
            return None
        if old.entry.objects + new.table.objects == state.entry.objects:
            return replace(before, snapshot=state.snapshot, new=new)
        self._close_pit(new.pit)
        return None

    def _ended(self, state: State) -> None:
        with self._lock:
            del self._opening[state.snapshot]

    def _opened(self, state: State, deadline: Deadline, first: int = 0) -> View:
        keys = self._answers.keys(state, deadline)
        opened = self._client.options(request_timeout=deadline.left()).open_point_in_time(
            index=state.generation, keep_alive=KEEP_ALIVE, allow_partial_search_results=False
        )
        try:
            return View(self._client, opened["id"], state, keys, deadline, first)
        except BaseException:
            self._close_pit(opened["id"])
            raise

    def forget(self, generation: str) -> None:
        """Keep no view of a generation: it is gone."""
        with self._lock:
            found = self._views.pop(generation, None)
        self._leave(found)

    def _drop(self, generation: str, failed: OpenView | None) -> None:
        """Keep no view that shares a point in time with one that failed. Another may have replaced it since."""
        with self._lock:
            found = self._views.get(generation)
            if found is None or failed is None or set(found.views).isdisjoint(failed.views):
                return
            del self._views[generation]
        self._leave(found)

    def close(self) -> None:
        """Close all of them, also those that are asked."""
        with self._lock:
            views = list(self._users)
            self._views.clear()
            self._users.clear()
        self._close(views)

    def _use(self, view: OpenView | None) -> None:
        """Have a view stay open; the caller has the lock."""
        for part in () if view is None else view.views:
            self._users[part] = self._users.get(part, 0) + 1

    def _leave(self, *views: OpenView | None) -> None:
        """Close what nobody uses any more, in a thread: a look-up has a deadline."""
        unused = []
        with self._lock:
            for part in (part for view in views if view is not None for part in view.views):
                left = self._users.pop(part, 0) - 1
                if left > 0:
                    self._users[part] = left
                elif left == 0:  # it is less after `close`
                    unused.append(part)
        if unused:
            _start(self._close, unused)

    def _close(self, views: list[View]) -> None:
        for view in views:
            self._close_pit(view.pit)

    def _close_pit(self, pit: str) -> None:
        with contextlib.suppress(Exception):  # it expires by itself soon
            self._client.close_point_in_time(id=pit)


def _start(work: Callable[..., None], *given: object) -> None:
    threading.Thread(target=work, args=given, name="es-skipping-view", daemon=True).start()
