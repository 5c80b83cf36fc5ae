"""Which parts of a view need a closer look, where many documents match.

Of a block of neighbouring ordinals all documents match, none, or some. Counts by blocks are a few thousand numbers,
however many documents match, and tell the first two apart. Where survivors of a look-up are neighbours, nearly all
blocks match wholly or not at all. The store asks only about the others which of their documents match.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from es_skipping.stores.elasticsearch.documents import WORD

__all__ = ["Blocks", "Flags", "Page", "block_size"]

_LEAST: Final = 64 * WORD
"""Ordinals of the smallest block."""
_ASKED_ALONG: Final = 16
"""Up to this many full blocks between two others are asked for along with them: their words take about as long as
another request."""
_MOST_RUNS: Final = 32
"""Blocks that lie apart take about this number of requests at most."""

Flags = npt.NDArray[np.bool_]


class Page(NamedTuple):
    """What one request is to tell: ordinals from ``low`` to before ``high``, by words of ``width`` of them."""

    low: int
    high: int
    width: int


def block_size(first: int, end: int, most_blocks: int) -> int:
    """How many ordinals a block has, where a reply may tell at most this number of blocks."""
    size = _LEAST
    while -(-end // size) - first // size > most_blocks:
        size *= 2
    return size


class Blocks:
    """How many documents of each block match.

    Parameters
    ----------
    first, end
        The ordinals of the view: from the first to before the end. Blocks begin at multiples of their size, so the
        first and the last may be in the view in part.
    size
        Ordinals of a block.
    starts, counts
        The first ordinal of each block where something matches, and how many documents do.
    """

    def __init__(
        self, first: int, end: int, size: int, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> None:
        self._first, self._end, self._size = first, end, size
        self._begin = first - first % size
        lows = np.arange(self._begin, end, size)
        self._counts = np.zeros(len(lows), np.int64)
        self._counts[(starts - self._begin) // size] = counts
        self._full = self._counts == np.minimum(lows + size, end) - np.maximum(lows, first)

    @property
    def matching(self) -> int:
        """The number of documents that match."""
        return int(self._counts.sum())

    def flags(self) -> Flags:
        """For each ordinal of the view, whether all documents of its block match."""
        return np.repeat(self._full, self._size)[self._first - self._begin :][: self._end - self._first]

    def agree(self, flags: Flags) -> bool:
        """Whether of each block as many ordinals have a flag as documents were counted."""
        padded = np.zeros(len(self._counts) * self._size, np.bool_)
        padded[self._first - self._begin :][: len(flags)] = flags
        return bool((np.count_nonzero(padded.reshape(-1, self._size), axis=1) == self._counts).all())

    def pages(self, width: int, most_words: int, full_too: bool = False) -> list[Page]:
        """What is to be asked for: blocks that match in part and, if wanted, those that match wholly.

        If a page has as few documents as words, each ordinal is a word of its own: that needs no sum, which takes half
        of a word's time. Not if full blocks are wanted too: only sums show that the powers of a word differ.
        """
        some = np.flatnonzero((self._counts > 0) & (full_too | ~self._full))
        if not len(some):
            return []
        far = np.diff(np.cumsum(self._full)[some]) > max(_ASKED_ALONG, len(self._counts) // _MOST_RUNS)
        pages = []
        for run in np.split(some, np.flatnonzero(far) + 1):
            begin = max(self._begin + int(run[0]) * self._size, self._first - self._first % width)
            end = min(self._begin + (int(run[-1]) + 1) * self._size, self._end)
            for low in range(begin, end, width * most_words):
                high = min(low + width * most_words, end)
                matching = self._matching_at_most(low, high)
                if matching:
                    few = not full_too and matching <= -(-(high - low) // width)
                    pages.append(Page(max(low, self._first), high, 1 if few else width))
        return pages

    def _matching_at_most(self, low: int, high: int) -> int:
        """Documents that match of all blocks that these ordinals touch."""
        at = slice((low - self._begin) // self._size, -(-(high - self._begin) // self._size))
        return int(self._counts[at].sum())
