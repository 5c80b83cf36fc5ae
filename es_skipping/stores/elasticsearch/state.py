"""A dataset's document: what is published of it, for readers and for the next writer."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition
from es_skipping.clauses.clause import Clause, indexes_of
from es_skipping.errors import StoreError
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.codec import check_format, definition_from_data, definition_to_data
from es_skipping.stores.elasticsearch.documents import PROVING_FORMAT
from es_skipping.stores.elasticsearch.fields import Group
from es_skipping.stores.elasticsearch.names import group_name

__all__ = ["STATE_FIELDS", "Segment", "State", "groups_for", "snapshot_of", "unfinished_groups", "unfinished_meta"]

STATE_FIELDS: Final = (
    "format",
    "dataset",
    "objects",
    "bytes",
    "refreshed",
    "generation",
    "version",
    "next_ordinal",
    "details",
    "state",
)
"""What `State.from_document` reads; the other fields of a dataset's document are for people."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The keys of ordinals ``first`` to ``first + count - 1``, in one document of a generation.

    Parameters
    ----------
    token
        Of the publication that they were written for, so that no other document ever has this one's id. Without it the
        id could come again after an operator restored an earlier state of the cluster. Empty in what was written before
        it was kept.
    """

    first: int
    count: int
    token: str = ""

    def id(self, generation: str) -> str:
        """Id of the document. A document with this id never changes, so it can be cached for ever."""
        return f"{generation}@{self.first}+{self.count}{self.token and '.'}{self.token}"


@dataclass(frozen=True, slots=True)
class State:
    """What is published of a dataset.

    Parameters
    ----------
    entry
        The dataset, as callers see it.
    generation
        The index that holds the objects' documents.
    version
        Counts publications.
    token
        Of the publication, see `snapshot_of`.
    index
        Identity of the generation's index, see `identity_of`; empty in what was written before it was kept.
    next_ordinal
        The first ordinal that was never handed out in this generation.
    groups
        Fields by index id.
    used
        Names of groups that were ever assigned in this generation.
    segments
        Which ordinals are published, and where their keys are. A document whose ordinal is in none belongs to a change
        that was not published.
    swept
        Whether what this publication replaced and removed is gone. Where its writer died before, those documents are
        there still, and the entry does not count them.
    outdated
        How many of the objects have documents of the first format, which prove nothing (see
        `es_skipping.stores.elasticsearch.documents`).
    """

    entry: DatasetEntry
    generation: str
    version: int
    next_ordinal: int
    groups: Mapping[str, Group] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    segments: tuple[Segment, ...] = ()
    swept: bool = True
    outdated: int = 0
    token: str = ""
    index: str = ""

    @property
    def definition(self) -> DatasetDefinition:
        return self.entry.definition

    @property
    def snapshot(self) -> str:
        """The name of the publication."""
        return snapshot_of(self.generation, self.version, self.token)

    def to_document(self) -> dict[str, Any]:
        """The document as JSON gives it back. Most of it is for people; ``details`` is for the package itself."""
        entry, definition = self.entry, self.entry.definition
        definition_data = definition_to_data(definition)
        state = {
            "definition": definition_data,
            "groups": _groups_to_data(self.groups),
            "used": sorted(self.used),
            "segments": [[segment.first, segment.count, segment.token] for segment in self.segments],
            "token": self.token,
            "index": self.index,
            "failed": [list(pair) for pair in entry.failed],
            "metadata_bytes": dict(entry.metadata_bytes),
            "swept": self.swept,
            "outdated": self.outdated,
        }
        return {
            "format": definition_data["format"],
            "dataset": definition.id,
            "table": definition.table,
            "reader": definition.format,
            "roots": list(definition.roots),
            "indexes": [index.id for index in definition.indexes],
            "objects": entry.objects,
            "bytes": entry.bytes,
            "failed": len(entry.failed),
            "refreshed": entry.refreshed,
            "generation": self.generation,
            "version": self.version,
            "next_ordinal": self.next_ordinal,
            "details": _as_details(state),
        }

    def advice(self, url: str) -> str:
        """The advice for documents that prove nothing."""
        return (
            f"{self.outdated} of {self.entry.objects} objects were written before format {PROVING_FORMAT} and count as "
            f"unknown; run once: es-skipping reindex {self.definition.id} --store {url}"
        )

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> State:
        """The state that `to_document` was called on.

        Raises
        ------
        StoreFormatError
            A newer version of this package wrote it.
        StoreError
            It is damaged.
        """
        check_format(document, f"dataset {document.get('dataset')!r} in Elasticsearch")
        try:
            state = _details(document)
            definition = definition_from_data(state["definition"])
            groups = _groups_from_data(state["groups"], definition)
            generation, version, token = document["generation"], document["version"], state.get("token", "")
            entry = DatasetEntry(
                definition=definition,
                snapshot=snapshot_of(generation, version, token),
                objects=document["objects"],
                bytes=document["bytes"],
                refreshed=document["refreshed"],
                failed=tuple((path, reason) for path, reason in state["failed"]),
                metadata_bytes=state["metadata_bytes"],
            )
            segments = tuple(Segment(*one) for one in state["segments"])
            used, swept = frozenset(state["used"]), state.get("swept", True)  # younger than format 1
            outdated = entry.objects if document["format"] < PROVING_FORMAT else state["outdated"]
            return State(
                entry=entry,
                generation=generation,
                version=version,
                next_ordinal=document["next_ordinal"],
                groups=groups,
                used=used,
                segments=segments,
                swept=swept,
                outdated=outdated,
                token=token,
                index=state.get("index", ""),
            )
        except (KeyError, TypeError, ValueError) as error:
            name = document.get("dataset")
            raise StoreError(f"the document of dataset {name!r} in Elasticsearch is damaged: {error!r}") from error

    def understands(self, entry: DatasetEntry, clause: Clause) -> bool:
        """Whether a clause made for an entry means the same here: equal facts of the reader, equal asked indexes."""
        if entry.definition.facts != self.definition.facts:
            return False
        theirs, ours = _by_id(entry.definition), _by_id(self.definition)
        return all(theirs.get(id) == ours.get(id) for id in indexes_of(clause))


def snapshot_of(generation: str, version: int, token: str) -> str:
    """The name of a publication. The token tells it from one of the same version that came after an operator restored
    an earlier state of the cluster: readers remember by this name.

    Examples
    --------
    >>> snapshot_of("es-skipping-objects-events-1", 7, "5c2e")
    'es-skipping-objects-events-1@7.5c2e'
    """
    return f"{generation}@{version}{token and '.'}{token}"


def _as_details(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state as an object; as text in one where the client would not read it back as it is: half surrogate pairs,
    numbers of more than 64 bits, hundreds of levels."""
    text = json.dumps(state)
    details: dict[str, Any] = json.loads(text)
    with contextlib.suppress(TypeError, ValueError):
        if orjson.loads(orjson.dumps(details)) == details:
            return details
    return {"text": text}


def _details(document: Mapping[str, Any]) -> Any:
    """What `_as_details` was given; format 1 had it as text."""
    if "details" not in document:
        return json.loads(document["state"])
    details = document["details"]
    return json.loads(details["text"]) if "text" in details else details


def _groups_to_data(groups: Mapping[str, Group]) -> list[dict[str, Any]]:
    return [
        {
            "index": id,
            "name": group.name,
            "prefix": None if group.prefix is None else base64.b64encode(group.prefix).decode("ascii"),
            "boxes": group.boxes,
            "axes": group.axes,
            "sides": list(group.sides),
            "spaces": list(group.spaces),
            "spans": group.spans,
        }
        for id, group in groups.items()
    ]


def _groups_from_data(data: Sequence[Mapping[str, Any]], definition: DatasetDefinition) -> dict[str, Group]:
    """The groups of the indexes that this version understands."""
    indexes = {index.id: index for index in definition.understood}
    return {
        one["index"]: Group(
            one["name"],
            indexes[one["index"]],
            None if one["prefix"] is None else base64.b64decode(one["prefix"]),
            one["boxes"],
            one["axes"],
            tuple(one.get("sides", ())),  # these three are younger than format 1
            tuple(one.get("spaces", ())),
            one.get("spans", False),
        )
        for one in data
        if one["index"] in indexes
    }


def unfinished_meta(definition: DatasetDefinition, groups: Mapping[str, Group]) -> dict[str, Any]:
    """What the mapping of a generation that is being built says of it, so that another process can go on."""
    unfinished = {"definition": definition_to_data(definition), "groups": _groups_to_data(groups)}
    return {"managed_by": "es_skipping", "format": FORMAT_VERSION, "unfinished": json.dumps(unfinished)}


def unfinished_groups(meta: Mapping[str, Any], definition: DatasetDefinition) -> dict[str, Group]:
    """The groups that `unfinished_meta` was given.

    Raises
    ------
    StoreError
        It was begun with another definition, or is damaged.
    """
    check_format(meta, f"the unfinished generation of dataset {definition.id!r} in Elasticsearch")
    try:
        unfinished = json.loads(meta["unfinished"])
        begun = definition_from_data(unfinished["definition"])
        groups = _groups_from_data(unfinished["groups"], begun)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"an unfinished generation of dataset {definition.id!r} is damaged: {error!r}") from error
    if begun != definition:
        raise StoreError(f"an unfinished generation of dataset {definition.id!r} was begun with another definition")
    return groups


def groups_for(definition: DatasetDefinition, base: State | None) -> tuple[dict[str, Group], frozenset[str]]:
    """Fields for each index: its own if its definition is the same, otherwise new ones."""
    used = set() if base is None else set(base.used)
    groups: dict[str, Group] = {}
    for index in definition.indexes:
        kept = None if base is None else base.groups.get(index.id)
        if kept is None or base is None or kept.index != index or definition.facts != base.definition.facts:
            kept = Group(group_name(index.type, index.columns, used), index)
            used.add(kept.name)
        groups[index.id] = replace(kept, index=index)
    return groups, frozenset(used)


def _by_id(definition: DatasetDefinition) -> dict[str, IndexDefinition]:
    return {index.id: index for index in definition.indexes}
