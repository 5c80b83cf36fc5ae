"""Which fields a user sees with their original mapping: a proof by a hidden field would be wrong.

Field-level security hides fields from searches, from ``_source`` and from the mapping alike, and a runtime field in the
mapping shadows the indexed one of its name. So the mapping that the server shows to a user tells what this user
sees. A group of fields with a flaw is unknown to a reader, and stops a writer, who would write the loss down.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from elasticsearch import Elasticsearch

from es_skipping.errors import StoreError
from es_skipping.stores.elasticsearch.answers import Deadline
from es_skipping.stores.elasticsearch.fields import Group, mapping
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.templates import load

__all__ = ["CHANGED", "Visibility", "flaws", "own_properties", "require_visible"]

CHANGED: Final = "is not as it was made"
_HIDDEN: Final = "is not in the mapping that this user sees (field-level security, or an index that was copied in part)"
_SHADOWED: Final = "is shadowed by a runtime field of the mapping"
_ASKED: Final = ("ordinal", "bit", "known", "empty", "format")
"""The document's own fields that look-ups rely on."""
_LATER: Final = ("empty", "format")
_HELPFUL: Final = ("bit",)
"""Look-ups do without them where they are not there, as in an index that an earlier version made."""
_FORMER: Final = {"indexed": {"type": "keyword", "ignore_above": 32_766}}
"""Read only from documents of the first format."""
_DEFAULTS: Final[Mapping[str, Any]] = {
    "index": True,
    "doc_values": True,
    "enabled": True,
    "coerce": True,
    "ignore_malformed": False,
    "null_value": None,
    "normalizer": None,
    "script": None,
    "path": None,
}
"""Parameters that decide what of a value can be searched, by default."""
_LONGEST_TERM: Final = 32_766
_RECHECK_SECONDS: Final = 300.0
"""How long the check of a mapping is valid: people change roles and mappings."""


def own_properties() -> dict[str, Any]:
    """The fields of a document beside those of the indexes."""
    properties: dict[str, Any] = load("objects-mappings")["template"]["mappings"]["properties"]
    return properties


def flaws(
    mappings: Mapping[str, Any], groups: Iterable[Group], *, own: Collection[str] = _ASKED, outdated: bool = False
) -> dict[str, str]:
    """The first flaw of each group of fields; groups without a flaw are left out.

    Parameters
    ----------
    mappings
        What the server answers when asked for the mapping of a generation: by index, if that is an alias.
    own
        The document's own fields that are needed as well. A flaw of one of them is one of every group.
    outdated
        Whether the index may be of the first format, which lacks the later ones of them.
    """
    listed = list(groups)
    found: dict[str, str] = {}
    if not mappings:
        return {group.name: "its index is not there" for group in listed}
    expected, spare = own_properties() | _FORMER, (*_HELPFUL, *(_LATER if outdated else ()))
    for reply in mappings.values():
        seen = reply["mappings"]
        properties, runtime = seen.get("properties", {}), seen.get("runtime", {})
        needed = [name for name in own if name in properties or name in runtime or name not in spare]
        shared = next(
            (flaw for name in needed for flaw in _flaws(properties.get(name), expected[name], name, runtime)), ""
        )
        for group in listed:
            flaw = shared or next(_flaws(properties.get(group.name), mapping(group), group.name, runtime), "")
            if flaw:
                found.setdefault(group.name, flaw)
    return found


def _flaws(found: Any, expected: Mapping[str, Any], name: str, runtime: Iterable[str]) -> Iterator[str]:
    if "properties" in expected:
        inside = found.get("properties", {}) if isinstance(found, Mapping) else {}
        for leaf, wanted in expected["properties"].items():
            yield from _flaws(inside.get(leaf), wanted, f"{name}.{leaf}", runtime)
    elif found is None:
        yield f"{name} {_HIDDEN}"
    elif any(name == other or name.startswith(f"{other}.") for other in runtime):
        yield f"{name} {_SHADOWED}"
    elif not _is_as_made(found, expected):
        yield f"{name} {CHANGED}"


def _is_as_made(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether the field has its original search parameters; a server spells out some defaults."""
    parameters = {**_DEFAULTS, **expected}
    longest = parameters.pop("ignore_above", _LONGEST_TERM)
    if found.get("ignore_above", _LONGEST_TERM) < longest:
        return False
    return all(found.get(name, _DEFAULTS.get(name)) == value for name, value in parameters.items())


def require_visible(
    mappings: Mapping[str, Any], groups: Iterable[Group], doing: str, *, outdated: bool = False
) -> None:
    """Refuse to read whole documents back if this user does not see all their fields.

    Raises
    ------
    StoreError
        A field is hidden, shadowed or changed, or the documents' source is kept in part only.
    """
    own = own_properties() | (_FORMER if outdated else {})
    for flaw in flaws(mappings, groups, own=own, outdated=outdated).values():
        raise StoreError(
            f"{doing}: the field {flaw}. What this user does not see would be lost: a user who sees it may do this"
        )
    left_out = set(load("objects-mappings")["template"]["mappings"]["_source"]["excludes"])
    for index, reply in mappings.items():
        source = reply["mappings"].get("_source", {})
        if source.keys() - {"excludes"} or not left_out.issuperset(source.get("excludes", ())):
            raise StoreError(
                f"{doing}: the mapping of {index} has _source {dict(source)}, so fields of its documents would be lost "
                f"when they are written anew; expected nothing but {sorted(left_out)} to be left out"
            )


class Visibility:
    """The fields that one user sees of published generations, cached for some minutes."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, float, dict[str, str]]] = {}

    def flaws(self, state: State, deadline: Deadline) -> Mapping[str, str]:
        """By name of a group, why it is unknown to this user."""
        now = time.monotonic()
        with self._lock:
            snapshot, read, found = self._seen.get(state.generation, ("", 0.0, {}))
        if snapshot == state.snapshot and now - read < _RECHECK_SECONDS:
            return found
        reply = self._client.options(request_timeout=deadline.left()).indices.get_mapping(index=state.generation)
        found = flaws(reply.body, state.groups.values(), outdated=state.outdated > 0)
        with self._lock:
            if len(self._seen) >= _REMEMBERED:
                self._seen.pop(next(iter(self._seen)))
            self._seen[state.generation] = (state.snapshot, now, found)
        return found

    def forget(self, generation: str) -> None:
        """Ask the server again at the next look-up."""
        with self._lock:
            self._seen.pop(generation, None)


_REMEMBERED: Final = 1_000
