"""The document of one object: what it says, and how it is made smaller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

from es_skipping.clauses.metadata import Metadata
from es_skipping.stores.base import ObjectId, ObjectMetadata
from es_skipping.stores.elasticsearch.fields import Group, decode, encode, whole

__all__ = ["as_json", "document_id", "new_document", "object_id", "object_metadata", "shrunk", "weight"]

_PRINT_BITS: Final = 11
"""About so much of the inverted index does one fingerprint take (benchmarks/fingerprints.py)."""


def document_id(key: bytes, token: str) -> str:
    """Of an object's document that one change writes; the same however often it is written."""
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
        What is stored of the very object already; what ``one`` does not know of is taken from it.
    """
    document: dict[str, Any] = {
        "path": one.id.path,
        "size": one.id.length,
        "modified": one.id.mtime,
        "ordinal": ordinal,
        "indexed": [],
        "known": [],
        "change": token,
        "version": version,
    }
    rows = one.rows if one.rows is not None or same is None else same.get("rows")
    if rows is not None:
        document["rows"] = rows
    for id, group in groups.items():
        metadata = one.metadata.get(id)
        made = None if metadata is None else encode(group, metadata)
        if made is None and id not in one.metadata and same is not None and group.name in same["indexed"]:
            made = whole(group, same)
        if made is not None:
            document[group.name] = made[0]
            document["indexed"].append(group.name)
            document["known"] += made[1]
    return document


def object_id(source: Mapping[str, Any]) -> ObjectId:
    """The identity that a document was made from."""
    return ObjectId(source["path"], source["size"], source["modified"])


def object_metadata(source: Mapping[str, Any], groups: Mapping[str, Group]) -> ObjectMetadata:
    """What a document says of its object."""
    found: dict[str, Metadata] = {}
    for index, group in groups.items():
        if group.name in source["indexed"]:
            found[index] = decode(group, source[group.name], group.name in source["known"])
    return ObjectMetadata(object_id(source), source.get("rows"), found)


def as_json(document: Mapping[str, Any]) -> bytes:
    """A document as it is sent. It holds no NaN and no infinity, which JSON has not."""
    try:
        return orjson.dumps(document)
    except TypeError:  # half a surrogate pair, which a path can hold, or a number of more than 64 bits
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def weight(fields: Mapping[str, Any]) -> int:
    """About how many bytes one index's fields take."""
    if "prints" not in fields:
        return len(as_json(fields))
    kept = {name: value for name, value in fields.items() if name != "prints"}
    return len(as_json(kept)) + len(fields["prints"]) * _PRINT_BITS // 8


def shrunk(source: bytes) -> bytes | None:
    """A document that is too large without its largest metadata, which makes that unknown; None where it has none."""
    document = json.loads(source.decode("utf-8", "surrogatepass"))
    if not document["indexed"]:
        return None
    largest = max(document["indexed"], key=lambda name: weight(document[name]))
    del document[largest]
    for name in ("indexed", "known"):
        document[name] = [group for group in document[name] if group.partition(".")[0] != largest]
    return as_json(document)
