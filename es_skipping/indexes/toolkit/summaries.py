"""The common part of collectors: one batch's column as plain values, bounds that stay small, sets that stay small.

Everything here runs in Spark's Python workers on Arrow batches, so it works on whole arrays and turns only a batch's
few results into Python values. Strings are handled as the bytes they are: byte order is Spark's order, and bytes that
are not UTF-8 must not stop a build.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from es_skipping.predicates.text import successor
from es_skipping.predicates.types import DataType, Value

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "BOUND_BYTES",
    "Distinct",
    "Plain",
    "distinct",
    "lower_bound",
    "merge_distinct",
    "plain",
    "python_bound",
    "python_values",
    "upper_bound",
]

BOUND_BYTES: Final = 1024
"""At most this many bytes of a string or binary bound; longer bounds are rounded outward."""

_CHUNKS: Final = 64
"""Number of small arrays to gather before duplicates are removed again."""


class Plain(NamedTuple):
    """A column of one batch: ``array`` holds what is neither null nor NaN, the rest is counted.

    In ``array`` dates and timestamps are their integers, strings their bytes, and -0.0 is 0.0.
    """

    array: pa.Array
    nulls: int
    nans: int


def plain(array: pa.Array, type: DataType) -> Plain:
    """Separate the values of a batch from its nulls and NaNs.

    Parameters
    ----------
    array
        The column in the form in which Spark hands it to a worker.
    type
        The column's SQL type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain(pa.array([1.5, None, float("nan")]), DataType("double"))[1:]
    (1, 1)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = array.null_count
    nans = 0
    if nulls:
        array = array.drop_null()
    if type.is_float:
        is_nan = pc.is_nan(array)
        nans = pc.sum(is_nan).as_py() or 0
        if nans:
            array = array.filter(pc.invert(is_nan))
        # -0.0 + 0.0 is 0.0, and no other number changes: for Spark the two zeros are equal.
        array = pc.add(array, pa.scalar(0.0, array.type))
    elif type.name == "date":
        array = array.view(pa.int32())
    elif type.name in ("timestamp", "timestamp_ntz"):
        if array.type.unit != "us":
            array = array.cast(pa.timestamp("us", array.type.tz))
        array = array.view(pa.int64())
    elif type.name == "string":
        array = array.cast(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    return Plain(array, nulls, nans)


# --- bounds -------------------------------------------------------------------------------------------------------


def lower_bound(value: bytes, *, text: bool) -> bytes:
    """A short value that is not above ``value``: its beginning, cut between code points where it is ``text``."""
    if len(value) <= BOUND_BYTES:
        return value
    end = BOUND_BYTES
    if text:
        # A code point has at most three continuation bytes (10xxxxxx); more are not UTF-8, which is found later.
        while end > BOUND_BYTES - 3 and value[end] & 0xC0 == 0x80:
            end -= 1
    return value[:end]


def upper_bound(value: bytes, *, text: bool) -> bytes | None:
    """A short value that is not below ``value``, or None where there is none.

    Raises
    ------
    UnicodeDecodeError
        The value is ``text``, but its beginning is not UTF-8.
    """
    start = lower_bound(value, text=text)
    if start is value:
        return value
    if text:
        above = successor(start.decode("utf-8"))
        return None if above is None else above.encode("utf-8")
    stripped = start.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


# --- sets ---------------------------------------------------------------------------------------------------------


class Distinct(NamedTuple):
    """Distinct values of some batches: ``chunks`` are arrays of them, None if there were too many.

    The same value may be in several chunks: making them distinct again is put off until there are many chunks or many
    values, so that its cost is shared by the batches in between.
    """

    chunks: tuple[pa.Array, ...] | None
    nulls: int
    nans: int


def distinct(column: Plain, limit: int, limit_bytes: int) -> Distinct:
    """The distinct values of one batch."""
    import pyarrow.compute as pc

    return Distinct(_bounded(pc.unique(column.array), limit, limit_bytes), column.nulls, column.nans)


def merge_distinct(
    first: Distinct,
    second: Distinct,
    limit: int,
    limit_bytes: int,
    *,
    compact: bool = False,
) -> Distinct:
    """The distinct values of both; with ``compact`` in at most one chunk."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = None if first.chunks is None or second.chunks is None else first.chunks + second.chunks
    if chunks and (
        compact
        or len(chunks) > _CHUNKS
        or sum(map(len, chunks)) > 2 * limit
        or sum(chunk.nbytes for chunk in chunks) > 2 * limit_bytes
    ):
        chunks = _bounded(pc.unique(pa.concat_arrays(chunks)), limit, limit_bytes)
    return Distinct(chunks, first.nulls + second.nulls, first.nans + second.nans)


def _bounded(unique: pa.Array, limit: int, limit_bytes: int) -> tuple[pa.Array, ...] | None:
    if len(unique) > limit or unique.nbytes > limit_bytes:
        return None
    return (unique,) if len(unique) else ()


def python_values(chunks: tuple[pa.Array, ...], type: DataType) -> frozenset[Value] | None:
    """The values as `es_skipping.predicates.types` holds them, or None if a string is not UTF-8."""
    values = [value for chunk in chunks for value in chunk.to_pylist()]
    if type.name != "string":
        return frozenset(values)
    try:
        return frozenset(value.decode("utf-8") for value in values)
    except UnicodeDecodeError:
        return None


def python_bound(value: object, type: DataType) -> Value:
    """One bound as `es_skipping.predicates.types` holds it.

    Raises
    ------
    UnicodeDecodeError
        A string that is not UTF-8.
    """
    if type.name == "string":
        assert isinstance(value, bytes)
        return value.decode("utf-8")
    assert isinstance(value, int | float | Decimal | bytes)
    return value
