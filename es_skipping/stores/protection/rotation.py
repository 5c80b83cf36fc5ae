"""New keys for protected indexes, while readers go on with the old ones.

A sealed index is decrypted and encrypted again, beside the old one; no data is read. Tokens cannot be turned into
values, so a hashed index is built anew from the data (`es_skipping.build.rotation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectMetadata, Protection
from es_skipping.errors import DatasetError, ProtectionError
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.protection.keys import key_of, load_key
from es_skipping.stores.protection.store import ProtectedStore
from es_skipping.stores.reindex import TELL_EVERY, Progress

__all__ = ["Rotated", "hashed_among", "renewed", "rotate_sealed", "with_new_key"]


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did, or for a dry run would do.

    Parameters
    ----------
    dataset
        Its id.
    format, snapshot
        Its format, such as ``delta``, and for a table with a log the version that the metadata covers. None for plain
        files, or where unknown.
    rotated
        The ids of the indexes with the new key.
    objects
        How many objects the dataset has.
    superseded
        What the store keeps for readers that know only the old key; see `MetadataStore.drop_superseded`.
    """

    dataset: str
    format: str
    snapshot: str | None
    rotated: tuple[str, ...]
    objects: int = 0
    superseded: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: DatasetEntry, indexes: Iterable[IndexDefinition], superseded: Iterable[str] = ()) -> Rotated:
        """What was done to these indexes of a dataset."""
        named = entry.definition
        ids = tuple(index.id for index in indexes)
        return cls(named.id, named.format, named.snapshot, ids, entry.objects, tuple(superseded))


def with_new_key(definition: DatasetDefinition, to_key: str, from_key: str | None = None) -> DatasetDefinition:
    """A dataset's definition with a new key for its protected indexes; the same definition if all have it already.

    Parameters
    ----------
    to_key
        The new key's reference.
    from_key
        Only indexes whose key has this reference; None for all.

    Raises
    ------
    ProtectionError
        The old or the new key of an index cannot be had.
    """
    indexes = tuple(
        one if one.protection is None or from_key not in (None, one.protection.key) else _with_new_key(one, to_key)
        for one in definition.indexes
    )
    return replace(definition, indexes=indexes)


def renewed(before: DatasetDefinition, after: DatasetDefinition) -> tuple[IndexDefinition, ...]:
    """The indexes that `with_new_key` gave another key, as they are after it."""
    return tuple(index for index in after.indexes if index not in before.indexes)


def hashed_among(indexes: Iterable[IndexDefinition]) -> list[str]:
    """The ids of the hashed ones: a hash cannot be turned into a value, so a new key takes the data."""
    return [index.id for index in indexes if index.protection is not None and index.protection.mode == "hashed"]


def _with_new_key(index: IndexDefinition, to_key: str) -> IndexDefinition:
    before = index.protection
    assert before is not None
    try:
        key_of(before)
    except ProtectionError as error:
        if before.key != to_key:
            raise
        raise ProtectionError(
            f"{error}: a rotation reads with the old key and writes with the new one, so give the new key a reference "
            "of its own"
        ) from None
    if before.key == to_key:
        return index
    key = load_key(to_key)
    # The same for every attempt, so that the next one goes on, and for the dataset of the row groups.
    salt = key.derived("rotate", before.salt, index.id)[:16].hex()
    return replace(index, protection=Protection(before.mode, to_key, key.check_value(salt), salt))


def rotate_sealed(
    store: MetadataStore,
    dataset: str,
    to_key: str,
    *,
    from_key: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Rotated:
    """Encrypt a dataset's sealed indexes with a new key, and publish them in one step.

    Readers go on with the old key until then, and afterwards if they lack the new one, until
    `MetadataStore.drop_superseded`. A run that was killed leaves the old indexes in use; the next one does it all.

    Parameters
    ----------
    store
        As `open_store` returns it.
    dataset
        Its id.
    to_key
        The new key's reference: ``env:NAME`` or ``file:PATH``. Another reference than the old key's.
    from_key
        Rotate only indexes whose key has this reference; None for all.
    dry_run
        Only check the keys, and what would be rotated.

    Raises
    ------
    DatasetError
        The store has no such dataset.
    ProtectionError
        A key cannot be had, or an index to rotate is hashed: build it anew with `es_skipping.build.rotation`.
    StoreConflict
        Another writer changed the dataset meanwhile. Nothing was published.

    Examples
    --------
    >>> import tempfile
    >>> from es_skipping.stores.registry import open_store
    >>> rotate_sealed(open_store(tempfile.mkdtemp()), "payroll", "env:NEW_KEY")
    Traceback (most recent call last):
        ...
    es_skipping.errors.DatasetError: there is no dataset 'payroll' in ...
    """
    entry = store.dataset(dataset)
    if entry is None:
        raise DatasetError(f"there is no dataset {dataset!r} in {store.url}")
    assert isinstance(store, ProtectedStore)
    definition = with_new_key(entry.definition, to_key, from_key)
    new = renewed(entry.definition, definition)
    if hashed := hashed_among(new):
        raise ProtectionError(
            f"{', '.join(hashed)} cannot be rotated without the data, because hashes cannot be turned into values: "
            "run es-skipping reindex --to-key, or es_skipping.build.rotation.rotate_keys"
        )
    if new and not dry_run:
        with store.change_protection(definition) as change:
            for index in new:
                copied = store.sealed_metadata(entry, entry.definition.index(index.id))
                change.seal(index.id, _told(copied, entry.objects, progress))
            change.publish(entry.failed)
    return Rotated.of(entry, new, () if dry_run else store.superseded(dataset))


def _told(objects: Iterator[ObjectMetadata], total: int, progress: Progress | None) -> Iterator[ObjectMetadata]:
    for done, one in enumerate(objects):
        if progress is not None and done % TELL_EVERY == 0:
            progress(done, total, "encrypt")
        yield one
