"""The common part of collectors of fingerprints: the distinct hashes of some batches, and the metadata from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from es_skipping.clauses.fingerprints import cell_of, hash_of, space_for
from es_skipping.clauses.metadata import Fingerprints, Values
from es_skipping.indexes.toolkit.summaries import Distinct, Plain

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from es_skipping.predicates.types import Value

__all__ = [
    "MOST_HASHES",
    "Hashes",
    "ascending",
    "fingerprints",
    "hashes_of",
    "hashes_of_distinct",
    "merge_hashes",
    "printed",
]

MOST_HASHES: Final = 1 << 20
"""An object with more distinct values than this is unknown to the index."""

_CHUNKS: Final = 32
"""Number of arrays to gather before their hashes are made distinct again."""


_SAMPLE: Final = 1024
"""Values that show whether a batch has many equal ones."""


class Hashes(NamedTuple):
    """Distinct hashes of some batches: ``chunks`` are ascending arrays of them, None where they were too many. The same
    hash may be in several chunks."""

    chunks: tuple[npt.NDArray[np.uint64], ...] | None
    nulls: int
    nans: int


def hashes_of(column: Plain) -> Hashes:
    """The hashes of one batch's values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [len(chunk) for chunk in hashes_of(Plain(pa.array([b"a", b"b", b"a"]), 0, 0)).chunks]
    [2]
    """
    return _hashed([column.array], column.nulls, column.nans)


def hashes_of_distinct(values: Distinct) -> Hashes:
    """The hashes of values that a collector gathered as values, before there were too many."""
    return _hashed(values.chunks or (), values.nulls, values.nans)


def _hashed(arrays: Iterable[pa.Array], nulls: int, nans: int) -> Hashes:
    import numpy as np
    import pyarrow.compute as pc

    from es_skipping.indexes.toolkit.array_hashes import hashes_of_array

    chunks = []
    for array in arrays:
        # Where few values are equal, to look for them takes longer than to hash them.
        repeats = 2 * len(pc.unique(array[:_SAMPLE])) < min(len(array), _SAMPLE)
        values = pc.unique(array) if repeats else array
        if len(values):
            chunks.append(_distinct(np.sort(hashes_of_array(values))))
    return _bounded(Hashes(tuple(chunks), nulls, nans))


def ascending(values: Collection[Value]) -> npt.NDArray[np.uint64]:
    """The distinct hashes of some values, in order.

    Raises
    ------
    ValueError
        As for `es_skipping.clauses.fingerprints.hash_of`.
    """
    import numpy as np

    return _distinct(np.sort(np.fromiter(map(hash_of, values), np.uint64, len(values))))


def _distinct(sorted: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """An ascending array without repetitions; ``np.unique`` takes several times as long."""
    import numpy as np

    first = np.ones(len(sorted), np.bool_)
    np.not_equal(sorted[1:], sorted[:-1], out=first[1:])
    return sorted[first]


def merge_hashes(first: Hashes, second: Hashes) -> Hashes:
    """The hashes of both."""
    chunks = None if first.chunks is None or second.chunks is None else first.chunks + second.chunks
    return _bounded(Hashes(chunks, first.nulls + second.nulls, first.nans + second.nans))


def _bounded(hashes: Hashes, *, compact: bool = False) -> Hashes:
    import numpy as np

    chunks = hashes.chunks
    if chunks and (compact or len(chunks) > _CHUNKS or sum(map(len, chunks)) > 2 * MOST_HASHES):
        together = _distinct(np.sort(np.concatenate(chunks)))
        return hashes._replace(chunks=(together,) if len(together) <= MOST_HASHES else None)
    return hashes


def fingerprints(hashes: Hashes, fpp: float) -> Fingerprints | Values | None:
    """The metadata of all of an object's hashes; None where they were too many."""
    chunks = _bounded(hashes, compact=True).chunks
    if chunks is None:
        return None
    if not chunks:
        return Values(frozenset(), hashes.nulls, hashes.nans)
    return printed(chunks[0], fpp, hashes.nulls, hashes.nans)


def printed(hashes: npt.NDArray[np.uint64], fpp: float, nulls: int | None, nans: int | None) -> Fingerprints:
    """The metadata of hashes that `ascending` made."""
    import numpy as np

    from es_skipping.indexes.toolkit.packing import packed

    space = space_for(len(hashes), fpp)
    if space < 1 << 32:
        high, low = hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF)
        width = np.uint64(space)
        cells = _distinct((high * width + (low * width >> np.uint64(32))) >> np.uint64(32))
    else:
        cells = np.array(sorted({cell_of(hash, space) for hash in hashes.tolist()}), np.uint64)
    return Fingerprints(space, len(cells), packed(cells, space), nulls, nans)
