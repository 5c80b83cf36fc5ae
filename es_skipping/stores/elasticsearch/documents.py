"""The document of one object: its contents, and how it is made smaller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

from es_skipping.catalog import IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.elasticsearch.fields import (
    Encoded,
    Group,
    decode,
    encode,
    with_prefix,
    with_room_for,
)
from es_skipping.stores.elasticsearch.prints import PACKED, decode_prints, terms_of

__all__ = [
    "PROVING_FORMAT",
    "WORD",
    "as_json",
    "document_id",
    "forms_of",
    "groups_of",
    "metadata_size",
    "new_document",
    "object_id",
    "object_metadata",
    "shrunk",
    "weights",
    "whole",
]

PROVING_FORMAT: Final = 2
"""The first format whose documents list the indexes without a value; older documents prove nothing."""

WORD: Final = 48
"""Ordinals of one word. Each has a power of two as ``bit``; a double holds the sum of as many exactly."""

_PRINT_BITS: Final = 11
"""Estimated size of one fingerprint in the inverted index (benchmarks/fingerprints.py)."""


def document_id(key: bytes, token: str) -> str:
    """The id of the document of an object in one change; the same for every attempt."""
    return f"{key.hex()}.{token}"


def new_document(
    one: ObjectMetadata,
    ordinal: int,
    groups: Mapping[str, Group],
    token: str,
    version: int,
    same: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The document of an object.

    Parameters
    ----------
    one, ordinal
        The object, and its ordinal.
    groups
        Fields by index id.
    token, version
        Of the change that writes it.
    same
        The document already stored for this object; it supplies the metadata that ``one`` lacks.
    """
    document: dict[str, Any] = {
        "path": one.id.path,
        "size": one.id.length,
        "modified": one.id.mtime,
        "ordinal": ordinal,
        "bit": 1 << ordinal % WORD,
        "format": FORMAT_VERSION,
        "known": [],
        "change": token,
        "version": version,
    }
    rows = one.rows if one.rows is not None or same is None else same.get("rows")
    if rows is not None:
        document["rows"] = rows
    empty: list[str] = []
    for id, group in groups.items():
        metadata = one.metadata.get(id)
        made = None if metadata is None else encode(group, metadata)
        if made is None and id not in one.metadata and same is not None:
            made = _stored(group, same)._replace(fields=whole(group, same))
        if made is not None and made.known:
            document[group.name] = made.fields
            document["known"] += made.known
            empty += made.empty
    return document | ({"empty": empty} if empty else {})


def groups_of(document: Mapping[str, Any]) -> list[str]:
    """The groups of a document that know something."""
    return list(dict.fromkeys(form.partition(".")[0] for form in document["known"]))


def forms_of(group: Group, source: Mapping[str, Any]) -> tuple[str, ...]:
    """The forms, of those that this version knows, in which a stored document remembers a group."""
    known = (group.name, group.span, group.prints, group.counts)
    found = tuple(form for form in source.get("known", ()) if form in known)
    if not found and group.name in source.get("indexed", ()):  # format 1 listed apart what it knew less of
        found = (group.prints if source.get(group.name, {}).keys() >= PACKED else group.counts,)
    return found


def whole(group: Group, source: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that `encode` made, again from a stored document's ``_source``, which lacks some of them."""
    return _with_prints(source.get(group.name, {}))


def _with_prints(fields: Mapping[str, Any]) -> dict[str, Any]:
    if "prints" in fields or not fields.keys() >= PACKED:
        return dict(fields)
    return {**fields, "prints": terms_of(decode_prints(fields))}


def _stored(group: Group, source: Mapping[str, Any]) -> Encoded:
    """What was encoded, again from a stored document's ``_source``, which lacks some of it."""
    fields, known = source.get(group.name, {}), forms_of(group, source)
    if source.get("format", 1) >= PROVING_FORMAT:
        empty = [name for name in known if name in source.get("empty", ())]
    else:
        empty = [name for name in known if _counts_say_empty(name, group, fields, source.get("rows"))]
    return Encoded(fields, known, tuple(empty))


def _counts_say_empty(name: str, group: Group, fields: Mapping[str, Any], rows: int | None) -> bool:
    """Whether a document of the first format holds no value in a group, proved by what is there, not by what is not."""
    if name not in (group.name, group.span):
        return False
    if group.index.kind != "intervals" and name != group.span:
        return fields.get("count") == 0
    nulls = fields.get("nulls")
    return (
        rows is not None
        and nulls is not None
        and "range" not in fields.get("span", fields)
        and (rows == nulls + (fields.get("nans") or 0))
    )


def object_id(source: Mapping[str, Any]) -> ObjectId:
    """The identity that a document was made from."""
    return ObjectId(source["path"], source["size"], source["modified"])


def object_metadata(source: Mapping[str, Any], groups: Mapping[str, Group]) -> ObjectMetadata:
    """The metadata in an object's document."""
    found: dict[str, Metadata] = {}
    for index, group in groups.items():
        metadata = decode(group, _stored(group, source))
        if metadata is not None:
            found[index] = metadata
    return ObjectMetadata(object_id(source), source.get("rows"), found)


def as_json(document: Mapping[str, Any]) -> bytes:
    """A document as it is sent. It holds no NaN and no infinity, which JSON has not."""
    try:
        return orjson.dumps(document)
    except TypeError:  # half a surrogate pair, which a path can hold, or a number of more than 64 bits
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def weights(document: Mapping[str, Any]) -> dict[str, int]:
    """Estimated bytes of each group's fields in a document, be it new or the ``_source`` of a stored one."""
    return {name: weight(document[name]) for name in groups_of(document)}


def weight(fields: Mapping[str, Any]) -> int:
    """Estimated bytes of one index's fields."""
    kept = _with_prints(fields)
    prints = kept.pop("prints", ())
    return len(as_json(kept)) + len(prints) * _PRINT_BITS // 8


def metadata_size(index: IndexDefinition, metadata: Metadata) -> int:
    """Estimated bytes of one object's metadata, before there is a document."""
    made = encode(with_room_for(with_prefix(Group("size", index), [metadata]), metadata), metadata)
    return 0 if made is None else weight(made.fields)


def shrunk(source: bytes) -> bytes | None:
    """A document that is too large, without its largest metadata, which becomes unknown; None if it has none."""
    document = json.loads(source.decode("utf-8", "surrogatepass"))
    groups = groups_of(document)
    if not groups:
        return None
    largest = max(groups, key=lambda name: weight(document[name]))
    del document[largest]
    for name in ("known", "empty"):
        if name in document:
            document[name] = [group for group in document[name] if group.partition(".")[0] != largest]
    return as_json(document)
