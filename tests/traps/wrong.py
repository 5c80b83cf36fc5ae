"""Wrong variants: the product, broken for a while the way a real system was broken.

Each is a function that makes a context manager, for `tests.traps.trap.trap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

from es_skipping.catalog import DatasetEntry, ObjectId
from es_skipping.clauses import evaluate
from es_skipping.clauses.metadata import Metadata
from es_skipping.clauses.questions import Question
from es_skipping.lookup import lookup, verdict
from es_skipping.predicates.tree import Predicate
from es_skipping.stores.base import KEY_BYTES, Answer
from es_skipping.stores.parquet.store import ParquetStore
from tests.services import forget_datasets

__all__ = ["RIGHT", "all_of", "answers", "any_read_will_do", "filters", "metadata_seen_as", "replaced", "skips_also"]

RIGHT: Any = object()
"""A rule returns it where it has nothing wrong to say."""

Wrong = Callable[[], AbstractContextManager[Any]]
_answer = evaluate.answer


def replaced(target: Any, name: str, by: Any) -> Wrong:
    """Another function (or value) in the place of one of the product's."""
    return lambda: mock.patch.object(target, name, by)


def all_of(*variants: Wrong) -> Wrong:
    """Several at once."""

    @contextmanager
    def together() -> Iterator[None]:
        with ExitStack() as stack:
            for variant in variants:
                stack.enter_context(variant())
            yield

    return together


def answers(rule: Callable[[Question, Metadata | None], Any]) -> Wrong:
    """The store also skips what a wrong rule refutes: ``rule(question, metadata)`` is true, false, None or `RIGHT`."""

    def wrong_answer(question: Question, metadata: Metadata | None) -> bool | None:
        said = rule(question, metadata)
        return _answer(question, metadata) if said is RIGHT else said

    right = ParquetStore.lookup

    def wrong_lookup(store: ParquetStore, entry: DatasetEntry, clause: Any, **options: Any) -> Answer:
        skipped = _keys(right(store, entry, clause, **options))
        with mock.patch.object(evaluate, "answer", wrong_answer):
            for one in store.metadata(entry.definition.id):
                if evaluate.holds(clause, one.metadata) is False:
                    skipped.add(one.id.key)
        return Answer(b"".join(skipped), entry.objects)

    return replaced(ParquetStore, "lookup", wrong_lookup)


def metadata_seen_as(change: Callable[[Metadata], Metadata]) -> Wrong:
    """The store also skips what would be refuted if the metadata were changed like that."""
    return answers(lambda question, metadata: metadata and _answer(question, change(metadata)))


def skips_also(change: Callable[[ObjectId], ObjectId]) -> Wrong:
    """With each object, the store also skips the one that it takes to be the same."""
    right = ParquetStore.lookup

    def wrong_lookup(store: ParquetStore, entry: DatasetEntry, clause: Any, **options: Any) -> Answer:
        skipped = _keys(right(store, entry, clause, **options))
        known = [one.id for one in store.metadata(entry.definition.id) if one.id.key in skipped]
        return Answer(b"".join(skipped | {change(id).key for id in known}), entry.objects)

    return replaced(ParquetStore, "lookup", wrong_lookup)


def _keys(answer: Answer) -> set[bytes]:
    return {answer.skip[at : at + KEY_BYTES] for at in range(0, len(answer.skip), KEY_BYTES)}


def filters(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Wrong:
    """Each node of the filter trees is changed before it is read, children first."""

    def changed(node: Mapping[str, Any]) -> dict[str, Any]:
        whole = dict(node)
        if "ch" in whole:
            whole["ch"] = [changed(child) for child in whole["ch"]]
        return change(whole)

    def read(trees: Any, declared: Any) -> Predicate:
        return verdict.read_filters([changed(tree) for tree in trees])

    return replaced(lookup, "read_filters", read)


@contextmanager
def any_read_will_do() -> Iterator[None]:
    """Indexes are used whatever schema, options and settings a read has."""
    with mock.patch.object(verdict, "compatible", lambda definition, index, request: None):
        forget_datasets()
        yield
