"""Fingerprints in the inverted index, which is itself the filter: a term per cell, and one query asks all objects.

A term is the space and the cell in it, each as a few letters, so that objects of different sizes share a field without
meeting each other's cells. Each document also has the term of the space alone: only a document that has it can be
proved not to hold a cell. These terms are kept out of ``_source``, where they would take more room than in the index;
the packed cells beside them are in it. A document copied by its ``_source`` alone lacks all of these terms, that of the
space too, and is therefore kept.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from es_skipping.clauses.fingerprints import cell_of, cells_of, hash_of
from es_skipping.clauses.metadata import Fingerprints
from es_skipping.predicates.types import Value
from es_skipping.stores.elasticsearch.bools import Query, all_of, none_of
from es_skipping.stores.elasticsearch.codecs import Unanswerable

__all__ = ["PACKED", "decode_prints", "encode_prints", "holds_none", "prints_mapping", "terms_of"]

PACKED: Final = frozenset({"packed", "space", "cells"})
"""The fields from which fingerprints are made again."""

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz~_"


def prints_mapping() -> dict[str, Any]:
    """The mapping of fingerprints: the field for queries, and the fields from which they are made again."""
    number = {"type": "long", "index": False, "doc_values": False}
    return {
        "prints": {"type": "keyword", "ignore_above": 32_766, "doc_values": False},
        "packed": {"type": "binary"},
        "space": number,
        "cells": number,
    }


def encode_prints(metadata: Fingerprints) -> dict[str, Any]:
    """The fields of one object's fingerprints."""
    packed = base64.b64encode(metadata.packed).decode("ascii")
    return {
        "prints": terms_of(metadata),
        "packed": packed,
        "space": metadata.space,
        "cells": metadata.count,
    }


def decode_prints(fields: Mapping[str, Any]) -> Fingerprints:
    """The fingerprints that `encode_prints` was given; ``prints`` is not needed."""
    packed = base64.b64decode(fields["packed"])
    return Fingerprints(fields["space"], fields["cells"], packed, fields.get("nulls"), fields.get("nans"))


def terms_of(metadata: Fingerprints) -> list[str]:
    """What ``prints`` holds.

    Examples
    --------
    >>> from es_skipping.clauses.fingerprints import pack
    >>> terms_of(Fingerprints(100, 2, pack([3, 70], 100), nulls=0))
    ['1a.', '1a.03', '1a.16']
    """
    space, width = _space(metadata.space)
    cells = cells_of(metadata.packed, metadata.space, metadata.count)
    return [space, *(space + _letters(cell, width) for cell in cells)]


def holds_none(field: str, spaces: Sequence[int], values: Iterable[Value], most: int) -> Query:
    """Proof that none of these values has left a fingerprint: of documents of these spaces.

    Parameters
    ----------
    most
        At most this many terms in one query.
    """
    try:
        hashes = [hash_of(value) for value in values]
    except ValueError:
        raise Unanswerable("text with half a surrogate pair") from None
    terms: dict[str, None] = {}
    for one in spaces:
        space, width = _space(one)
        terms |= dict.fromkeys(space + _letters(cell_of(hash, one), width) for hash in hashes)
    known = {"terms": {field: [_space(space)[0] for space in spaces]}}
    listed = list(terms)
    chunks = [listed[at : at + most] for at in range(0, len(listed), most)]
    return all_of([known, none_of({"terms": {field: chunk}} for chunk in chunks)])


def _space(space: int) -> tuple[str, int]:
    """The term of a space, which the terms of its cells begin with, and how many letters follow."""
    width = 1
    while 64**width < space:
        width += 1
    return f"{_letters(space, 1)}.", width


def _letters(number: int, width: int) -> str:
    """A number as letters that sort like the numbers, with at least this many letters."""
    letters = ""
    while number or len(letters) < width:
        letters = _LETTERS[number & 63] + letters
        number >>= 6
    return letters
