"""New keys for all protected indexes of a dataset, the hashed ones included: these are built anew from the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_skipping.build.collect import Progress
from es_skipping.errors import DatasetError
from es_skipping.row_groups import row_groups_of
from es_skipping.spark.services import service_of, store_of
from es_skipping.stores.protection.rotation import Rotated, hashed_among, renewed, rotate_sealed, with_new_key

if TYPE_CHECKING:
    from es_skipping.build.dataset import Dataset

__all__ = ["rotate_keys"]


def rotate_keys(
    dataset: Dataset, to_key: str, *, from_key: str | None = None, progress: Progress | None = None
) -> Rotated:
    """Give a dataset's protected indexes a new key, while queries go on with the old one.

    Sealed indexes are encrypted again without reading data. If any index is hashed, all of the dataset's metadata is
    built anew from the data, and published in one step.

    Parameters
    ----------
    to_key
        The new key's reference: ``env:NAME`` or ``file:PATH``. Another reference than the old key's.
    from_key
        Rotate only indexes whose key has this reference; None for all.

    Raises
    ------
    DatasetError
        The dataset has no index.
    ProtectionError
        The old or the new key cannot be had. Nothing was changed.
    """
    store = store_of(dataset._spark)
    entry = store.dataset(dataset.id)
    if entry is None:
        raise DatasetError(f"{dataset!r} has no index in the store {store.url}: create one with create_indexes")
    definition = with_new_key(entry.definition, to_key, from_key)
    new = renewed(entry.definition, definition)
    if hashed_among(new):
        dataset._update((), progress=progress, must_exist=True, new_key=(to_key, from_key))
        return Rotated.of(store.dataset(dataset.id) or entry, new, store.superseded(dataset.id))
    done = rotate_sealed(store, dataset.id, to_key, from_key=from_key, progress=progress)
    if store.dataset(row_groups_of(dataset.id)) is not None:
        rotate_sealed(store, row_groups_of(dataset.id), to_key, from_key=from_key, progress=progress)
    service_of(dataset._spark).registry.forget()
    return done
