"""The joins that a scan's rows must pass, as the shim sends them with a request."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from es_skipping.stores.selection import split_keys

__all__ = ["FACT", "Dimension", "Joins", "Trees"]

Trees: TypeAlias = Sequence[Mapping[str, Any]]
"""A conjunction of filter trees, as parsed JSON."""

FACT: Final = -1
"""The scan itself, in the place of a dimension's number."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A relation in which a row of the scan must find a match.

    Parameters
    ----------
    roots, format, options, data_schema, partition_schema
        As of a request.
    listing
        A digest of all objects of the relation; see `listing_digest`. None if some hold no row that can match, or if
        some of their rows are no rows of the relation.
    keys
        Otherwise, of the objects that the matching rows are in.
    filters
        What the matching row satisfies.
    """

    roots: tuple[str, ...]
    format: str
    options: Mapping[str, str]
    data_schema: Mapping[str, Any]
    partition_schema: Mapping[str, Any]
    listing: str | None = None
    keys: frozenset[bytes] = frozenset()
    filters: Trees = ()


@dataclass(frozen=True, slots=True)
class Joins:
    """The dimensions that a row of the scan must find a match in, all at once, or it has no effect on the result.

    Parameters
    ----------
    dimensions
        None for one that cannot be used.
    equal
        Pairs of equal columns of the same type: number of a dimension (or `FACT`) and name, twice.
    """

    dimensions: tuple[Dimension | None, ...] = ()
    equal: tuple[tuple[int, str, int, str], ...] = field(default=())

    @classmethod
    def parse(cls, read: Mapping[str, Any]) -> Joins:
        """Read the field of a request."""
        return cls(
            tuple(None if one is None else _dimension(one) for one in read["dimensions"]),
            tuple((int(a), str(x), int(b), str(y)) for a, x, b, y in read["equal"]),
        )

    def matches(self, owner: int, column: str, key: str) -> Iterator[int]:
        """The numbers of the dimensions whose column ``key`` equals a column of the fact or of another dimension."""
        for first, left, second, right in self.equal:
            for here, name, there, other in ((first, left, second, right), (second, right, first, left)):
                if (here, name, other) == (owner, column, key) and there != FACT and self.dimensions[there] is not None:
                    yield there


def _dimension(read: Mapping[str, Any]) -> Dimension:
    return Dimension(
        roots=tuple(read["roots"]),
        format=read["format"],
        options=read["options"],
        data_schema=read["dataSchema"],
        partition_schema=read["partitionSchema"],
        listing=read.get("listing"),
        keys=split_keys(base64.b64decode(read.get("keys", ""))),
        filters=tuple(read["filters"]),
    )
