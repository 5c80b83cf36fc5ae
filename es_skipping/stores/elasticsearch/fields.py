"""The metadata translator: one index's metadata of one object as a group of fields, and back.

==========  =====================================================================================================
kind        fields of the group
==========  =====================================================================================================
intervals   ``min``, ``max`` (for people; for strings also to refine), ``range`` (for queries), ``only`` and
            ``only_count`` (the values, where every interval is a single one), ``bounds`` (strings: kept, not indexed),
            ``nulls``, ``nans``
values      ``values`` (for people), ``equal`` (what is asked for equality, where people's field is not exact),
            ``order`` (what is asked for ranges), ``count``, ``nulls``, ``nans``
            Or, of an object that is remembered by less: ``prints`` (what is asked, not in ``_source``), ``packed``,
            ``space``, ``cells``, see `es_skipping.stores.elasticsearch.prints`; ``span``, the fields of intervals
fingerprint as values
boxes       ``box_0`` ... each with a field per axis, named after the index's columns; ``count``, ``centre``
==========  =====================================================================================================

A field that is missing is unknown, whether the document lacks it or the user may not see it. The document's field
``known`` says for each group in which form the object is remembered: ``minmax_ts`` as its kind says, ``.span`` by
intervals, ``.prints`` by fingerprints, ``.counts`` by the counts alone. An index in a form that a reader does not know
is unknown to it. The field ``empty`` lists what is known to hold no value; the absence of a value is believed only
where the very field that is asked is seen to hold others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.metadata import Box, Boxes, Fingerprints, Intervals, Metadata, Values
from es_skipping.predicates.text import successor
from es_skipping.predicates.types import DataType, Value
from es_skipping.stores.elasticsearch.codecs import Codec, Unanswerable, codec_of, common_prefix
from es_skipping.stores.elasticsearch.names import field_of
from es_skipping.stores.elasticsearch.prints import PACKED, decode_prints, encode_prints, prints_mapping

__all__ = [
    "Encoded", "Group", "cut_down", "cut_up", "decode", "encode", "mapping", "needs_prefix", "span_of", "with_prefix",
    "with_room_for",
]  # fmt: skip

_LONGEST_BOUND: Final = 8_000
"""Bytes of a string bound that are kept; a longer one is cut outward."""
_LONGEST_ONLY: Final = 8_000
_MAX_SINGLE_VALUES: Final = 64
_MAX_READABLE_VALUES: Final = 1_000
"""At most this many values in the readable copy of a value list; a longer list has only the exact copy."""
_MAX_BOXES: Final = 64
_BYTES_TYPES: Final = ("string", "binary")
_DOUBLE: Final = DataType("double")
_LONGEST_TERM: Final = 32_766
_LONGEST_SIDE: Final = 200


@dataclass(frozen=True, slots=True)
class Group:
    """One index's group of fields.

    Parameters
    ----------
    name
        Of the fields; never given to another definition within a generation, so whoever asks for it gets metadata of
        the definition it knows, or none.
    prefix
        Of strings and binary, see `codec_of`; None before the first value.
    boxes, axes
        How many boxes the mapping has room for, and of how many dimensions.
    sides
        Fields of a box, one an axis; where there are none, ``axis_0`` and so on.
    spaces
        Of the fingerprints that there are.
    spans
        Whether an object may be remembered by intervals, though it is an index of values.
    """

    name: str
    index: IndexDefinition
    prefix: bytes | None = None
    boxes: int = 0
    axes: int = 0
    sides: tuple[str, ...] = ()
    spaces: tuple[int, ...] = ()
    spans: bool = False

    @property
    def room(self) -> tuple[int, int, bool, bool]:
        """What the mapping depends on."""
        return self.boxes, self.axes, bool(self.spaces), self.spans

    def side(self, axis: int) -> str:
        """Field of an axis in each box."""
        return self.sides[axis] if axis < len(self.sides) else f"axis_{axis}"

    @property
    def span(self) -> str:
        return f"{self.name}.span"

    @property
    def prints(self) -> str:
        """What ``known`` lists where an object is remembered by fingerprints."""
        return f"{self.name}.prints"

    @property
    def counts(self) -> str:
        """What ``known`` lists where no more than counts of nulls and NaNs is known."""
        return f"{self.name}.counts"

    @property
    def codec(self) -> Codec:
        return codec_of(self.index.value_type, self.prefix or b"")

    @property
    def equal(self) -> str:
        """Field of a value list that equality is asked of."""
        return f"{self.name}.{'values' if _shown_is_exact(self.index.value_type) else 'equal'}"

    @property
    def order(self) -> str:
        """Field of a value list that ranges are asked of."""
        return f"{self.name}.order" if self.index.value_type.name in _BYTES_TYPES else self.equal


class Encoded(NamedTuple):
    """One index's metadata of one object, as fields of a document.

    Parameters
    ----------
    fields
        Of the group.
    known
        The forms in which the group knows the object, see the module; empty if it knows nothing.
    empty
        The forms that are known to hold no value.
    """

    fields: dict[str, Any]
    known: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def span_of(group: Group) -> Group:
    """The intervals in the place of a group's values, as a group of their own."""
    return replace(group, name=group.span, index=replace(group.index, kind="intervals"))


def _shown_is_exact(type: DataType) -> bool:
    return type.is_integer or type.name in _BYTES_TYPES


# --- the mapping --------------------------------------------------------------------------------------------------


def mapping(group: Group) -> dict[str, Any]:
    """The mapping of a group: what the fields of its columns are."""
    fields: dict[str, Any] = {}
    count = {"type": "long"}
    if group.index.kind == "boxes":
        sides = {group.side(axis): {"type": "double_range"} for axis in range(group.axes)}
        fields = {f"box_{box}": {"properties": sides} for box in range(group.boxes)}
        fields |= {"count": {"type": "integer"}, "centre": {"type": "geo_point"}}
        return {"properties": fields}
    type = group.index.value_type
    if not type.supported:
        return {"properties": {"nulls": count, "nans": count}}
    codec = group.codec
    shown = _field(codec.shown)
    if group.index.kind == "intervals":
        fields = {
            "min": shown,
            "max": shown,
            "range": {"type": f"{codec.order}_range"},
            "only": _field("keyword") | {"doc_values": False},
            "only_count": {"type": "integer"},
        }
        if type.name in _BYTES_TYPES:
            fields["bounds"] = {"type": "keyword", "index": False, "doc_values": False}
    else:
        fields = {"values": shown, "count": {"type": "integer"}}
        if not _shown_is_exact(type):
            fields["equal"] = {"type": "long" if codec.order == "double" else codec.order}
        if type.name in _BYTES_TYPES:
            fields["order"] = {"type": "ip", "doc_values": False}
        if group.spaces:
            fields |= prints_mapping()
        if group.spans:
            fields["span"] = mapping(span_of(group))
    return {"properties": fields | {"nulls": count, "nans": count}}


def _field(type: str) -> dict[str, Any]:
    if type == "date":  # they carry no zone where Spark's type has none; people read them as UTC
        return {"type": type, "format": "strict_date_optional_time"}
    # Explicit, because a setting of the index can lower it: longer terms are then stored, and never found.
    return {"type": type, "ignore_above": _LONGEST_TERM} if type == "keyword" else {"type": type}


# --- what a group learns from the metadata it gets ----------------------------------------------------------------


def needs_prefix(group: Group) -> bool:
    """Whether the common prefix is still to be chosen."""
    return group.prefix is None and group.index.kind != "boxes" and group.index.value_type.name in _BYTES_TYPES


def with_prefix(group: Group, some: Iterable[Metadata]) -> Group:
    """The group with the prefix that the first metadata suggests. It stays sound whatever comes later."""
    found: list[bytes] = []
    for metadata in some:
        values: Iterable[Value] = ()
        if isinstance(metadata, Intervals):
            values = [end for pair in metadata.ranges or () for end in pair]
        elif isinstance(metadata, Values):
            values = metadata.values
        for value in values:
            if isinstance(value, str):
                found.append(value.encode("utf-8", "surrogatepass"))
            elif isinstance(value, bytes):
                found.append(value)
    return replace(group, prefix=common_prefix(found)) if found else group


def with_room_for(group: Group, metadata: Metadata) -> Group:
    """The group, with more room if this metadata needs it."""
    if isinstance(metadata, Fingerprints) and metadata.space not in group.spaces:
        return replace(group, spaces=(*group.spaces, metadata.space))
    if isinstance(metadata, Intervals) and group.index.kind in ("values", "fingerprints"):
        return replace(group, spans=True)
    if not isinstance(metadata, Boxes) or not metadata.boxes:
        return group
    boxes, axes = min(len(metadata.boxes), _MAX_BOXES), max(len(box) for box in metadata.boxes)
    if boxes <= group.boxes and axes <= group.axes:
        return group
    sides = group.sides if group.axes else _sides(group.index.columns, axes)
    return replace(group, boxes=max(boxes, group.boxes), axes=max(axes, group.axes), sides=sides)


def _sides(columns: Sequence[str], axes: int) -> tuple[str, ...]:
    """The fields of the axes, named after the columns; none where those cannot tell the axes apart."""
    names = tuple(map(field_of, columns))
    fit = all(0 < len(name) <= _LONGEST_SIDE and not re.fullmatch(r"axis_\d+", name) for name in names)
    return names if fit and len(set(names)) == len(names) == axes else ()


# --- metadata to fields -------------------------------------------------------------------------------------------


def encode(group: Group, metadata: Metadata) -> Encoded | None:
    """One object's metadata as fields of its document; None if the fields can hold none of it."""
    try:
        match group.index.kind, metadata:
            case "intervals", Intervals():
                return _intervals(group, metadata)
            case "values" | "fingerprints", Values(values):
                return Encoded(_values(group, metadata), (group.name,), () if values else (group.name,))
            case "values" | "fingerprints", Fingerprints():
                return Encoded(encode_prints(metadata) | _counts(metadata), (group.prints,))
            case "values" | "fingerprints", Intervals():
                if metadata.ranges is None or not group.index.value_type.supported:
                    return None
                span = _intervals(span_of(group), metadata)
                return span._replace(fields={"span": span.fields} | _counts(metadata))
            case "boxes", Boxes(boxes):
                return Encoded(_boxes(group, metadata), (group.name,), () if boxes else (group.name,))
    except Unanswerable:
        return None
    return None


def _counts(metadata: Intervals | Values | Fingerprints) -> dict[str, int]:
    counts = {"nulls": metadata.nulls, "nans": metadata.nans}
    return {name: count for name, count in counts.items() if count is not None}


def _intervals(group: Group, metadata: Intervals) -> Encoded:
    ranges = metadata.ranges
    if ranges is None or not group.index.value_type.supported:
        return Encoded(dict(_counts(metadata)), (group.counts,))
    codec = group.codec
    fields: dict[str, Any] = {}
    if ranges:
        low, high = ranges[0][0], ranges[-1][1]
        if group.index.value_type.name in _BYTES_TYPES:
            fields["min"], fields["max"] = _bound(low, upwards=False), _bound(high, upwards=True)
            if len(ranges) > 1:
                fields["bounds"] = [_bound(end, upwards=at == 1) for pair in ranges for at, end in enumerate(pair)]
                if None in fields["bounds"]:
                    raise Unanswerable("a bound is too long to be kept")
        else:
            fields["min"], fields["max"] = codec.show(low), codec.show(high)
        keyed = [codec.interval(one, other) for one, other in ranges]
        fields["range"] = keyed[0] if len(keyed) == 1 else keyed
        only = _only(codec, ranges)
        if only is not None:
            fields["only"], fields["only_count"] = only, len(only)
    fields = {name: value for name, value in fields.items() if value is not None}
    return Encoded(fields | _counts(metadata), (group.name,), () if ranges else (group.name,))


def _only(codec: Codec, ranges: tuple[tuple[Value, Value], ...]) -> list[str] | None:
    """The values as terms, where each interval is a single value and they are few and short."""
    if ranges[0][0] != ranges[0][1] or len(ranges) > _MAX_SINGLE_VALUES or any(low != high for low, high in ranges):
        return None
    terms = [str(codec.term(low)) for low, _ in ranges]
    return terms if all(len(term.encode("utf-8")) <= _LONGEST_ONLY for term in terms) else None


def _bound(value: Value, *, upwards: bool) -> Any:
    """A bound in its stored form; None if no short value is greater."""
    kept = cut_up(value, _LONGEST_BOUND) if upwards else cut_down(value, _LONGEST_BOUND)
    return kept.hex() if isinstance(kept, bytes) else kept


def cut_down(value: Value, longest: int) -> str | bytes:
    """The beginning of a string or binary, with at most this many bytes; it is never greater than the whole."""
    if isinstance(value, str):
        raw = value.encode("utf-8") if value.isascii() or _is_utf8(value) else None
        if raw is None:
            raise Unanswerable("a string with half a surrogate pair is not UTF-8")
        return value if len(raw) <= longest else raw[:longest].decode("utf-8", "ignore")
    if isinstance(value, bytes):
        return value[:longest]
    raise Unanswerable(f"{value!r} is neither string nor binary")


def cut_up(value: Value, longest: int) -> str | bytes | None:
    """One of about as many bytes that is not less; None where there is none.

    Examples
    --------
    >>> cut_down("abcd", 2), cut_up("abcd", 2), cut_up("ab", 2)
    ('ab', 'ac', 'ab')
    """
    stem = cut_down(value, longest)
    if stem == value:
        return stem
    if isinstance(stem, str):
        return successor(stem)
    stem = stem.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _is_utf8(value: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in value)


def _values(group: Group, metadata: Values) -> dict[str, Any]:
    codec, type = group.codec, group.index.value_type
    listed = sorted(metadata.values)
    terms = [codec.term(value) for value in listed]
    if None in terms:
        raise Unanswerable("a value is too long to be a term")
    fields: dict[str, Any] = {"count": len(terms)}
    if _shown_is_exact(type):
        fields["values"] = terms
    else:
        fields["equal"] = terms
        if len(listed) <= _MAX_READABLE_VALUES:
            fields["values"] = [shown for shown in map(codec.show, listed) if shown is not None]
    if type.name in _BYTES_TYPES:
        fields["order"] = sorted({codec.order_of(value) for value in listed})  # written alike, they sort as keys do
    return fields | _counts(metadata)


def _boxes(group: Group, metadata: Boxes) -> dict[str, Any]:
    codec = codec_of(_DOUBLE)
    boxes = _few(metadata.boxes)
    if any(len(box) != group.axes for box in boxes):
        raise Unanswerable("boxes of different dimensions")
    fields: dict[str, Any] = {"count": len(boxes)}
    for at, box in enumerate(boxes):
        sides = {group.side(axis): codec.interval(low, high) for axis, (low, high) in enumerate(box)}
        fields[f"box_{at}"] = sides
    if boxes and group.axes == 2 and group.index.type == "GeoBox":
        centre = [(min(box[axis][0] for box in boxes) + max(box[axis][1] for box in boxes)) / 2 for axis in (0, 1)]
        if math.isfinite(sum(centre)) and abs(centre[0]) <= 90 and abs(centre[1]) <= 180:
            fields["centre"] = {"lat": centre[0], "lon": centre[1]}
    return fields


def _few(boxes: tuple[Box, ...]) -> tuple[Box, ...]:
    """At most as many boxes as the mapping may have; the last one covers the rest."""
    if len(boxes) <= _MAX_BOXES:
        return boxes
    kept, rest = boxes[: _MAX_BOXES - 1], boxes[_MAX_BOXES - 1 :]
    return (
        *kept,
        tuple((min(side[0] for side in sides), max(side[1] for side in sides)) for sides in zip(*rest, strict=True)),
    )


# --- and back -----------------------------------------------------------------------------------------------------


def decode(group: Group, stored: Encoded) -> Metadata | None:
    """The metadata that `encode` was given, save bounds of strings that were cut outward.

    An absent field proves nothing: only `Encoded.empty` states that there is no value. Returns None if unknown.
    """
    fields, known, is_empty = stored.fields, group.name in stored.known, group.name in stored.empty
    nulls, nans = fields.get("nulls"), fields.get("nans")
    if group.index.kind == "intervals":
        if not known and group.counts not in stored.known:
            return None
        return Intervals(_ranges(group, fields, is_empty) if known else None, nulls, nans)
    if group.index.kind == "boxes":
        boxes = _stored_boxes(group, fields, is_empty) if known else None
        return None if boxes is None else Boxes(boxes)
    if group.prints in stored.known:
        return decode_prints(fields) if fields.keys() >= PACKED else None
    span = span_of(group)
    if span.name in stored.known:
        return decode(span, stored._replace(fields=fields.get("span", {})))
    terms = [] if is_empty else fields.get("values" if _shown_is_exact(group.index.value_type) else "equal", [])
    if not known or (not is_empty and not terms):
        return None
    return Values(frozenset(map(group.codec.value, terms)), nulls, nans)


def _ranges(group: Group, fields: Mapping[str, Any], is_empty: bool) -> tuple[tuple[Value, Value], ...] | None:
    """The intervals; None where they are not all there."""
    codec = group.codec
    if is_empty:
        return ()
    if "range" not in fields:
        return None
    if group.index.value_type.name not in _BYTES_TYPES:
        stored = fields["range"] if isinstance(fields["range"], list) else [fields["range"]]
        try:
            return tuple(codec.decode(one) for one in stored)
        except KeyError:  # one of the ends
            return None
    ends = fields.get("bounds") or [fields.get("min"), fields.get("max")]
    if None in ends:
        return None  # the greatest value was too long to be kept
    values = [codec.value(end) for end in ends]
    return tuple(zip(values[::2], values[1::2], strict=True))


def _stored_boxes(group: Group, fields: Mapping[str, Any], is_empty: bool) -> tuple[Box, ...] | None:
    """The boxes; None where they are not all there."""
    codec, made = codec_of(_DOUBLE), list[Box]()
    for at in range(0 if is_empty else fields.get("count", 0)):
        sides = [fields.get(f"box_{at}", {}).get(group.side(axis)) for axis in range(group.axes)]
        if None in sides:
            return None
        made.append(tuple(codec.decode(side) for side in sides))  # type: ignore[misc]
    return tuple(made) if made or is_empty else None
