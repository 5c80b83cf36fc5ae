"""The columns that one pass over the rows selects, and the parts of indexes that it collects from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from es_skipping.build.columns import column_for_index
from es_skipping.build.dimensions import with_bits
from es_skipping.build.elements import collected_elements
from es_skipping.build.origin import Rows
from es_skipping.build.wanted import Wanted
from es_skipping.build.worker import PARTIAL, CollectPartials, Part, RowGroupRuns
from es_skipping.lookup.built_with import TEXT_FORMATS
from es_skipping.spark.relations import distinct_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["partials_of"]


def partials_of(
    read: Rows, group: Sequence[Wanted], format: str, runs: RowGroupRuns | None
) -> tuple[list[Part], DataFrame]:
    """The parts to collect, and the columns that each one reads."""
    from es_skipping.spark.classic import classic_column, map_in_arrow
    from es_skipping.spark.classic import functions as F

    frame = read.frame
    selected: list[Column] = [F.xxhash64(read.path).alias("object")]
    plain: dict[str, int] = {}
    parts: list[Part] = []
    with_keys = [one for one in group if one.bits is not None]
    for one in group:
        if one.bits is not None:
            continue
        columns = [column_for_index(frame, column.text) for column in one.columns]
        levels = max(column.levels for column in one.columns)
        places = []
        for column in collected_elements(one.index, columns, levels) if levels else one.index.collected(columns):
            # Select a column once, even if several indexes read it.
            text = next((c.text for c, given in zip(one.columns, columns, strict=True) if given is column), None)
            place = None if text is None else plain.get(text)
            if place is None:
                place = len(selected)
                selected.append(classic_column(column).alias(f"c{place}"))
                if text is not None:
                    plain[text] = place
            places.append(place)
        collector = one.index.collector(one.types)
        known = format not in TEXT_FORMATS
        kind, hidden = one.index.kind, one.is_protected
        parts.append(Part(one.id, collector, tuple(places), kind, one.value_type, known, levels, hidden))
    keys = [column_for_index(frame, one.columns[0].text).alias(f"k{at}") for at, one in enumerate(with_keys)]
    rows = frame.select(*selected, *keys, *([] if runs is None else [read.place.alias("place")]))
    width = len(selected)
    for at, one in enumerate(with_keys):
        assert one.bits is not None
        rows = with_bits(rows, one.bits, f"k{at}", width)
        places = list(range(width, width := width + len(one.bits.words)))
        parts.append(Part(one.id, one.index.collector(one.types), tuple(places), one.index.kind, one.value_type))
    # Arrays are never reduced: their elements and nulls are counted one by one.
    every = runs is not None or any(part.collector.repeats_matter or part.levels for part in parts)
    fewer = None if every else distinct_rows(rows, _limits(parts))
    collect = CollectPartials(parts, distinct=fewer is not None, runs=runs)
    partials = map_in_arrow(rows if fewer is None else fewer, collect, PARTIAL)
    return parts, partials


def _limits(parts: Sequence[Part]) -> list[int | None]:
    """For each selected column, the largest number of distinct values per object that any collector uses."""
    width = 1 + max(place for part in parts for place in part.columns)
    limits: list[int | None] = []
    for place in range(1, width):
        known = [part.collector.distinct_limit for part in parts if place in part.columns]
        limits.append(None if None in known else max(limit for limit in known if limit is not None))
    return limits
