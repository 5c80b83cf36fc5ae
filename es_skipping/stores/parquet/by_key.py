"""One index's metadata of every object of a snapshot, by key."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.base import MAX_METADATA_BY_KEY
from es_skipping.stores.parquet.columns import metadata_of
from es_skipping.stores.parquet.manifest import Manifest, Segment

__all__ = ["by_key"]


def by_key(
    manifest: Manifest,
    index: tuple[IndexDefinition, str],
    keys: Callable[[Segment], np.ndarray],
    read: Callable[[Segment], pa.Table],
) -> dict[bytes, Metadata | None]:
    """The metadata of an index; empty if there are too many objects.

    Parameters
    ----------
    index
        The index and its column.
    keys
        The keys of a segment's live rows.
    read
        The index's column of a segment's live rows, as a table.
    """
    found: dict[bytes, Metadata | None] = {}
    definition, column = index
    for segment in manifest.segments if manifest.objects <= MAX_METADATA_BY_KEY else ():
        packed = [key.tobytes() for key in keys(segment)]
        if column in segment.columns:
            found |= zip(packed, metadata_of(definition, read(segment).column(0).combine_chunks()), strict=True)
        else:
            found |= dict.fromkeys(packed)
    return found
