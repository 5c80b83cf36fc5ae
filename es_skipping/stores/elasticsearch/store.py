"""The metadata store in Elasticsearch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeVar

import numpy as np
from elasticsearch import ApiError

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, indexes_of
from es_skipping.clauses.metadata import Metadata
from es_skipping.clauses.questions import HasNotNull
from es_skipping.errors import SettingError
from es_skipping.settings import Settings
from es_skipping.stores.base import (
    Answer,
    Change,
    Check,
    MetadataStore,
    StoreQuery,
    check_change,
    check_understood,
    is_under,
)
from es_skipping.stores.elasticsearch.answers import Deadline, KeysMissing, explained, may_be_gone
from es_skipping.stores.elasticsearch.bools import Query, any_of, restricted
from es_skipping.stores.elasticsearch.by_key import by_key
from es_skipping.stores.elasticsearch.change import ElasticsearchChange
from es_skipping.stores.elasticsearch.checks import checks
from es_skipping.stores.elasticsearch.client import BUILD_LIMIT, LOOKUP_LIMIT, connect
from es_skipping.stores.elasticsearch.cluster import Cluster
from es_skipping.stores.elasticsearch.documents import forms_of, metadata_size, object_id, object_metadata
from es_skipping.stores.elasticsearch.files import ElasticsearchFiles
from es_skipping.stores.elasticsearch.guarantors import candidates
from es_skipping.stores.elasticsearch.limits import EXPENSIVE, Limits
from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX, Names
from es_skipping.stores.elasticsearch.open_views import Views
from es_skipping.stores.elasticsearch.query import skip_query
from es_skipping.stores.elasticsearch.query_log import QueryIndices
from es_skipping.stores.elasticsearch.restored import is_incomplete
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.visibility import Visibility, require_visible
from es_skipping.stores.guarantors import Guarantor, Ordering, first_rows
from es_skipping.stores.object_list import as_keys, is_among
from es_skipping.stores.query_log import LoggedQuery
from es_skipping.stores.selection import Selection, Selections
from es_skipping.stores.urls import check_url

__all__ = ["ElasticsearchStore"]

_T = TypeVar("_T")
_log = logging.getLogger("es_skipping.elasticsearch")
LARGE: Final = 4_096
"""From this many ordinals on, look-ups use an open point in time; below, naming the skipped objects is cheap."""
_MAX_PATHS_PER_QUERY: Final = 500
_MAX_ORDINALS_PER_QUERY: Final = 10_000
"""Limits of one query; a server takes some 65,000 terms."""


class ElasticsearchStore(MetadataStore):
    """Metadata in Elasticsearch 8.x or 9.x: a document per object, readable in Kibana.

    Parameters
    ----------
    url
        ``http(s)://host:port``, without user and password.
    settings
        Parsed settings by name (`es_skipping.settings.Settings`); None is all defaults.
    prefix
        Prefix of the names of all indices, aliases and templates.

    Raises
    ------
    SettingError
        The URL, a credential or the prefix cannot be used. The server is not contacted yet.

    Examples
    --------
    >>> ElasticsearchStore("https://es:9200/").url
    'https://es:9200'
    """

    def __init__(self, url: str, settings: Mapping[str, Any] | None = None, *, prefix: str = DEFAULT_PREFIX) -> None:
        if settings is None:
            settings = Settings({})
        if not prefix or any(c not in "abcdefghijklmnopqrstuvwxyz0123456789-_" for c in prefix):
            raise SettingError(f"the prefix is {prefix!r}, expected lower-case letters, digits, - and _")
        self._url = check_url(url)
        self._seconds: float = settings["store.timeout"]
        reader = connect(url, settings)
        build_seconds: float = settings["store.buildTimeout"]
        builder = reader.options(request_timeout=build_seconds)
        self._cluster = Cluster(reader, builder, Names(prefix), self._url, settings)
        self.files = ElasticsearchFiles(self._cluster)
        self._queries = QueryIndices(self._cluster)
        self._views = Views(reader, self._cluster.answers, build_seconds)
        self._visibility = Visibility(reader)
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._states: dict[str, State] = {}
        self._limits = Limits(self._url)

    def __repr__(self) -> str:
        return f"ElasticsearchStore({self._url!r})"

    @property
    def url(self) -> str:
        return self._url

    # --- datasets

    def datasets(self, *, timeout: float | None = None) -> list[DatasetEntry]:
        with self._cluster.translated("listing datasets", BUILD_LIMIT if timeout is None else LOOKUP_LIMIT):
            states = self._cluster.states(timeout)
        for state in states:
            self._remember(state.definition.id, state)
        return [state.entry for state in states]

    def dataset(self, id: str) -> DatasetEntry | None:
        with self._cluster.translated(f"reading dataset {id!r}"):
            state = self._remember(id, self._cluster.state(id))
        return None if state is None else state.entry

    def _remember(self, id: str, state: State | None) -> State | None:
        with self._lock:
            if state is None:
                self._states.pop(id, None)
            else:
                self._states[id] = state
        return state

    # --- changes

    def change(
        self, definition: DatasetDefinition, *, fresh: bool = False, name: str | None = None
    ) -> AbstractContextManager[Change]:
        return self._change(definition, fresh, name)

    def change_with(
        self, definition: DatasetDefinition, name: str, index_settings: Mapping[str, Any]
    ) -> AbstractContextManager[Change]:
        """As `MetadataStore.change_with`; settings override the templates': ``{"number_of_shards": 4}``."""
        return self._change(definition, True, name, index_settings)

    @contextmanager
    def _change(
        self,
        definition: DatasetDefinition,
        fresh: bool,
        name: str | None,
        index_settings: Mapping[str, Any] | None = None,
    ) -> Iterator[Change]:
        check_change(fresh, name)
        with self._cluster.translated(f"changing dataset {definition.id!r}"):
            base = self._cluster.state(definition.id) if fresh else self._cluster.settled(definition.id)
            check_understood(definition, None if fresh or base is None else base.definition)
            self._cluster.prepare()
        change = ElasticsearchChange(self._cluster, definition, base, fresh=fresh, name=name, settings=index_settings)
        try:
            change.begin()
            yield change
        finally:
            if change.published is None:
                change.discard()
            else:
                self._remember(definition.id, change.published)

    def superseded(self, id: str) -> list[str]:
        with self._cluster.translated(f"listing the generations of dataset {id!r}"):
            state = self._cluster.state(id)
            return [one for one in self._cluster.generations(id) if state is None or one != state.generation]

    def drop_superseded(self, id: str) -> list[str]:
        dropped = self.superseded(id)
        for generation in dropped:
            self._cluster.drop_generation(generation)
            self._forget(generation)
        return dropped

    def must_rebuild(self, entry: DatasetEntry, definition: DatasetDefinition) -> bool:
        with self._cluster.translated(f"reading dataset {entry.definition.id!r}"):
            return is_incomplete(self._cluster, entry.definition.id)

    def drop(self, id: str) -> None:
        with self._cluster.translated(f"dropping dataset {id!r}"):
            generation = self._cluster.drop(id)
        if generation is not None:
            self._forget(generation)
        self._remember(id, None)

    def _forget(self, generation: str) -> None:
        """A copy can have the name of a dropped one."""
        self._views.forget(generation)
        self._visibility.forget(generation)

    def optimize(self, id: str) -> None:
        with self._cluster.translated(f"optimizing dataset {id!r}"):
            state = self._cluster.state(id)
            if state is not None:
                self._cluster.builder.indices.forcemerge(index=state.generation, only_expunge_deletes=True)

    def log_queries(self, queries: Sequence[LoggedQuery], retention: float) -> None:
        with self._cluster.translated("writing the query log"):
            self._queries.write(queries, retention)

    def logged_queries(self, dataset: str | None = None, since: int = 0) -> Iterator[LoggedQuery]:
        with self._cluster.translated("reading the query log"):
            yield from self._queries.read(dataset, since)

    def metadata_size(self, index: IndexDefinition, metadata: Metadata) -> int:
        return metadata_size(index, metadata)

    def checks(self, stale_days: float = 7.0) -> Iterator[Check]:
        return checks(self._cluster, stale_days)

    def close(self) -> None:
        self._views.close()
        self._cluster.reader.close()

    # --- reading all of it

    def keys(self, id: str) -> bytes:
        with self._cluster.translated(f"reading the keys of dataset {id!r}"):
            state = self._cluster.state(id)
            if state is not None and state.next_ordinal >= LARGE:
                table = self._views.table(state, self._cluster.build_deadline())
                return table.keys(table.live)
        return b"".join(one.key for one, _ in self.objects(id))

    def objects(
        self, id: str, *, under: Collection[str] | None = None, keys: bytes | None = None
    ) -> Iterator[tuple[ObjectId, frozenset[str]]]:
        fields = ["path", "size", "modified", "known", "indexed"]
        sources = self._sources(id, fields, under) if keys is None else self._sources_of(id, fields, keys)
        for state, source in sources:
            if is_under(source["path"], under):
                known = frozenset(index for index, group in state.groups.items() if forms_of(group, source))
                yield object_id(source), known

    def _sources_of(self, id: str, fields: list[str], keys: bytes) -> Iterator[tuple[State, dict[str, Any]]]:
        wanted = np.sort(as_keys(keys))
        with self._cluster.translated(f"reading objects of dataset {id!r}"):
            state = self._cluster.state(id) if len(wanted) else None
            if state is None:
                return
            if state.next_ordinal < LARGE:
                for found in self._sources(id, fields):
                    if is_among(as_keys(object_id(found[1]).key), wanted)[0]:
                        yield found
                return
            published = as_keys(self._cluster.answers.keys(state, self._cluster.build_deadline()))
            ordinals = np.flatnonzero(is_among(published, wanted)).tolist()
            for at in range(0, len(ordinals), _MAX_ORDINALS_PER_QUERY):
                query: Query = {"terms": {"ordinal": ordinals[at : at + _MAX_ORDINALS_PER_QUERY]}}
                for hit in self._cluster.published(state, query, fields):
                    yield state, hit["_source"]

    def metadata(self, id: str) -> Iterator[ObjectMetadata]:
        doing = f"reading the metadata of dataset {id!r}"
        with self._cluster.translated(doing):
            state = self._cluster.state(id)
            if state is not None:
                found = self._cluster.mappings(state.generation)
                require_visible(found, state.groups.values(), doing, outdated=state.outdated > 0)
        for state, source in self._sources(id, None):
            yield object_metadata(source, state.groups)

    def _sources(
        self, id: str, fields: list[str] | None, under: Collection[str] | None = None
    ) -> Iterator[tuple[State, dict[str, Any]]]:
        with self._cluster.translated(f"reading the objects of dataset {id!r}"):
            state = self._cluster.state(id)
            if state is None:
                return
            before, order = "", None if state.swept else "path"
            for hit in self._cluster.published(state, self._at_or_below(under), fields, sort=order):
                source = hit["_source"]
                if source["path"] != before:  # not swept: of two, the first is the newer one
                    before = source["path"]
                    yield state, source

    def _at_or_below(self, under: Collection[str] | None) -> Query | None:
        """Documents of these paths; None is all of them, where they are too many for one query or it is refused."""
        if under is None or len(under) > _MAX_PATHS_PER_QUERY or not self._cluster.allows_expensive():
            return None
        below: list[Query] = [{"prefix": {"path": {"value": path + "/"}}} for path in under]
        return any_of([{"terms": {"path": list(under)}}, *below])

    # --- look-ups

    def lookup(
        self, entry: DatasetEntry, clause: Clause, *, timeout: float | None = None, detail: bool = False
    ) -> Answer:
        deadline, id = Deadline(self._seconds if timeout is None else timeout), entry.definition.id

        def answer(state: State) -> Answer | None:
            return self._answer(state, clause, deadline, detail) if state.understands(entry, clause) else None

        with self._cluster.translated(f"looking up dataset {id!r}", LOOKUP_LIMIT):
            state = self._states.get(id)
            if state is None or (state.entry.snapshot != entry.snapshot and not state.understands(entry, clause)):
                state = self._latest(id, deadline)
            # Without an answer the entry's generation is gone: nothing is known, so nothing is skipped.
            return self._asked(state, answer, deadline) or Answer(b"", 0)

    def guarantors(
        self,
        entry: DatasetEntry,
        clause: Clause,
        k: int,
        ordering: Ordering | None = None,
        *,
        under: Collection[str] | None = None,
        timeout: float | None = None,
    ) -> tuple[Guarantor, ...]:
        deadline, id = Deadline(self._seconds if timeout is None else timeout), entry.definition.id
        asked = clause if ordering is None else Conjunction((clause, Ask(ordering.index, HasNotNull())))
        with self._cluster.translated(f"looking up dataset {id!r}", LOOKUP_LIMIT):
            state = self._current(entry, deadline)
            if state is None or not state.understands(entry, asked):
                return ()
            if ordering is not None:
                group = state.groups.get(ordering.index)
                if group is None or group.name in self._visibility.flaws(state, deadline):
                    return ()

            def first(expensive: bool) -> tuple[Guarantor, ...]:
                query = self._query(state, clause, deadline, expensive)
                if query is None:
                    return ()
                return first_rows(candidates(self._cluster.answers, state, query, ordering, under, deadline), k)

            try:
                return self._limits.adapted(first)
            except (ApiError, KeysMissing) as error:
                if not may_be_gone(error):
                    raise
                return ()

    def metadata_by_key(
        self, entry: DatasetEntry, index: str, *, timeout: float | None = None
    ) -> Mapping[bytes, Metadata | None]:
        deadline = Deadline(self._seconds if timeout is None else timeout)

        def answer(state: State) -> Mapping[bytes, Metadata | None]:
            return by_key(self._cluster.answers, self._visibility, state, entry, index, deadline)

        with self._cluster.translated(f"reading {index} of dataset {entry.definition.id!r}", LOOKUP_LIMIT):
            return self._asked(self._current(entry, deadline), answer, deadline) or {}

    def _asked(self, state: State | None, ask: Callable[[State], _T], deadline: Deadline) -> _T | None:
        """What a state answers, or if it is gone meanwhile the latest; None if there is none."""
        if state is None:
            return None
        try:
            return ask(state)
        except (ApiError, KeysMissing) as error:
            if not may_be_gone(error):
                raise
        latest = self._latest(state.definition.id, deadline)
        return None if latest is None else ask(latest)

    def _current(self, entry: DatasetEntry, deadline: Deadline) -> State | None:
        """The state of an entry's snapshot, or if that is gone the latest; None if there is none."""
        state = self._states.get(entry.definition.id)
        if state is None or state.entry.snapshot != entry.snapshot:
            return self._latest(entry.definition.id, deadline)
        return state

    def _latest(self, id: str, deadline: Deadline) -> State | None:
        return self._remember(id, self._cluster.state(id, deadline.left()))

    def _answer(self, state: State, clause: Clause, deadline: Deadline, detail: bool) -> Answer:
        unusable = self._unusable(state, clause, deadline)
        found = self._skipped(state, clause, deadline)
        by_index: dict[str, int] = {}
        if detail:
            for index in indexes_of(clause):
                by_index[index] = Answer(self._skipped(state, restricted(clause, index), deadline), 0).skipped
        return Answer(found, state.entry.objects, by_index, unusable)

    def _unusable(self, state: State, clause: Clause, deadline: Deadline) -> tuple[tuple[str, str], ...]:
        """The indexes a clause asks that are unknown to this user, or of objects written long ago; warned of once."""
        flaws, id = self._visibility.flaws(state, deadline), state.definition.id
        asked = [(index, state.groups[index].name) for index in indexes_of(clause) if index in state.groups]
        found = [(index, f"the field {flaws[name]}") for index, name in asked if name in flaws]
        if state.outdated:
            found += [(index, state.advice(self._url)) for index, name in asked if name not in flaws]
        for index, reason in found:
            self._warn_once(
                f"data skipping of {id} is less than it could be: {index} is not used: {reason}", id + reason
            )
        return tuple(found)

    def _warn_once(self, text: str, key: str) -> None:
        with self._lock:
            if key in self._warned:
                return
            self._warned.add(key)
        _log.warning("%s", text)

    def _skipped(self, state: State, clause: Clause, deadline: Deadline) -> bytes | Selection | Selections:
        def skipped(expensive: bool) -> bytes | Selection | Selections:
            query = self._query(state, clause, deadline, expensive)
            if query is None:
                return b""
            if state.next_ordinal < LARGE:
                return self._cluster.answers.skipped(state, query, deadline)
            return self._views.select(state, query, deadline)

        return self._limits.adapted(skipped)

    def _query(self, state: State, clause: Clause, deadline: Deadline, expensive: bool) -> Query | None:
        flaws = self._visibility.flaws(state, deadline)
        return skip_query(
            clause,
            {index: group for index, group in state.groups.items() if group.name not in flaws},
            lambda group: self._cluster.answers.vocabulary(state, group, deadline),
            expensive=expensive,
            budget=self._limits.leaves,
        )

    def explain(self, entry: DatasetEntry, clause: Clause) -> StoreQuery:
        deadline, id = Deadline(self._seconds), entry.definition.id
        with self._cluster.translated(f"explaining a look-up of dataset {id!r}", LOOKUP_LIMIT):
            state = self._latest(id, deadline)
            if state is None or not state.understands(entry, clause):
                return StoreQuery(f"# nothing is asked: dataset {id!r} is not there any more, or indexed differently")
            expensive = self._limits.expensive
            query = self._query(state, clause, deadline, expensive)
            unusable = self._unusable(state, clause, deadline)
        notes = [f"{index} is not used: {reason}" for index, reason in unusable]
        limits = [] if expensive else [f"the server has {EXPENSIVE}=false, so strings are told apart by 16 bytes only"]
        return explained(self._cluster.names.objects(id), query, state.next_ordinal, notes, limits)
