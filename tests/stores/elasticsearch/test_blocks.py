"""Which ordinals are asked for once blocks were counted, checked by asking a model for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.stores.elasticsearch import blocks as module
from es_skipping.stores.elasticsearch.blocks import Blocks, block_size
from es_skipping.stores.elasticsearch.documents import WORD


def counted(matching: np.ndarray, first: int, end: int, size: int) -> Blocks:
    starts, counts = np.unique(matching // size * size, return_counts=True)
    return Blocks(first, end, size, starts, counts)


@st.composite
def matches(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Ordinals that match, in runs and scattered, and the view they are in."""
    first, length = draw(st.integers(0, 500)), draw(st.integers(1, 3000))
    told = np.zeros(length, np.bool_)
    for low, high, step in draw(st.lists(st.tuples(*[st.integers(0, 3000)] * 2, st.integers(1, 60)), max_size=5)):
        told[low:high:step] = draw(st.booleans())
    return np.flatnonzero(told) + first, first, first + length


@given(
    given=matches(),
    width=st.sampled_from([1, WORD]),
    most=st.integers(1, 80),
    along=st.sampled_from([0, 2, 16]),
    full_too=st.booleans(),
)
def test_pages_tell_what_counts_do_not(
    given: tuple[np.ndarray, int, int], width: int, most: int, along: int, full_too: bool
) -> None:
    matching, first, end = given
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LEAST", 2 * WORD)
        patch.setattr(module, "_ASKED_ALONG", along)
        size = block_size(first, end, most)
        assert len(np.unique(np.arange(first, end) // size)) <= most, "more blocks than a reply may tell"
        blocks = counted(matching, first, end, size)
        assert blocks.matching == len(matching)
        flags = blocks.flags()
        assert len(flags) == end - first
        asked = blocks.pages(width, most, full_too)
        if full_too:
            assert all(page.width == width for page in asked)
            words = {int(one) for page in asked for one in np.arange(page.low, page.high) // width}
            assert words >= {int(one) for one in matching // width}, "a word whose powers of two are not seen to differ"
        for low, high, of in asked:
            assert first <= low < high <= end
            told = matching[(low <= matching) & (matching < high)]
            assert len(np.unique(told // of)) <= most, "more buckets than a reply may tell"
            flags[low - first : high - first] = np.isin(np.arange(low, high), told)
        assert (np.flatnonzero(flags) + first).tolist() == matching.tolist()
        assert blocks.agree(flags)
        other = np.roll(flags, size)
        as_many = np.array_equal(*(np.unique(np.flatnonzero(one) + first) // size for one in (flags, other)))
        assert blocks.agree(other) == as_many


@pytest.mark.parametrize(
    ("blocks", "first", "most", "size"), [(4, 0, 4, 1), (10, 0, 4, 4), (3, 100, 3, 1), (3, 101, 2, 2), (3, 5, 1, 4)]
)
def test_blocks_are_as_small_as_they_may_be(blocks: int, first: int, most: int, size: int) -> None:
    assert block_size(3072 * first, 3072 * (first + blocks), most) == 3072 * size


def test_full_blocks_between_others() -> None:
    """A few are asked for along with the others, more are not: then two requests are cheaper."""
    size = block_size(0, 60 * 3072, 60_000)
    for between, requests in ((16, 1), (17, 3)):
        asked = [0, between + 1, 2 * between + 2]
        matching = np.setdiff1d(np.arange((asked[-1] + 1) * size), [at * size for at in asked])
        pages = counted(matching, 0, 60 * size, size).pages(WORD, 60_000)
        assert len(pages) == requests
        assert (pages[0].low, pages[-1].high) == (0, (asked[-1] + 1) * size)


def test_where_few_match_each_ordinal_is_a_word() -> None:
    """As many as the page has words are few. A page where nothing matches is left out."""
    blocks = np.arange(10, 13) * 3072
    matching = np.concatenate([blocks[0] + np.arange(64) * 48, blocks[2] + np.arange(65) * 47])
    found = counted(matching, blocks[0], blocks[2] + 3072, 3072).pages(WORD, 64)
    assert found == [(blocks[0], blocks[1], 1), (blocks[2], blocks[2] + 3072, WORD)]


def test_words_begin_where_the_server_lets_them() -> None:
    """The first may begin before the view."""
    pages = counted(np.arange(50, 3000), 50, 4000, 3072).pages(WORD, 2)
    assert pages == [(max(50, low), low + 96, WORD) for low in range(48, 3072 - 48, 96)] + [(3024, 3072, WORD)]


def test_empty_blocks_are_not_asked_for() -> None:
    matching = np.array([5, 500_000])
    assert counted(matching, 0, 600_000, 3072).pages(WORD, 1000) == [(0, 48_000, 1), (480_000, 500_736, 1)]
    assert counted(matching[:0], 0, 600_000, 3072).pages(WORD, 1000) == []
