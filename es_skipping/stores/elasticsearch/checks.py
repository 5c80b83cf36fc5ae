"""What an operator wants to know about a cluster before trusting it: each check makes one finding."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from elasticsearch import ApiError, AuthorizationException, NotFoundError

from es_skipping.stores.base import Check
from es_skipping.stores.elasticsearch.product import SUPPORTED_MAJORS
from es_skipping.stores.elasticsearch.templates import COMPONENTS, TEMPLATES, load
from es_skipping.stores.elasticsearch.visibility import CHANGED, flaws

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.cluster import Cluster
    from es_skipping.stores.elasticsearch.state import State

__all__ = ["READER", "WRITER", "checks"]

READER: Final = ("read", "view_index_metadata")
WRITER: Final = (*READER, "write", "create_index", "manage")
_DAY_MS: Final = 86_400_000
_EXPENSIVE: Final = "search.allow_expensive_queries"


def checks(cluster: Cluster, stale_days: float) -> Iterator[Check]:
    """Health, version, privileges, the expensive-query setting, templates, mappings, unused indices and stale datasets.

    Raises
    ------
    StoreError
        The cluster does not answer, or does not let this user in.
    """
    with cluster.translated("looking at the cluster"):
        yield from _health(cluster)
        yield from _privileges(cluster)
        yield from _expensive(cluster)
        yield from _templates(cluster)
    states = cluster.states()
    yield from _mappings(cluster, states)
    yield from _unused(cluster, states)
    yield from _stale(states, stale_days)


def _health(cluster: Cluster) -> Iterator[Check]:
    try:
        health = cluster.builder.cluster.health()
        versions = sorted({node["version"] for node in cluster.builder.nodes.info()["nodes"].values()})
    except AuthorizationException:
        yield Check("cluster", "note", "this user may not see the cluster's health and version (privilege monitor)")
        return
    supported = all(version.split(".")[0] in SUPPORTED_MAJORS for version in versions)
    told = f"{health['status']}, {health['number_of_data_nodes']} data nodes, version {', '.join(versions)}"
    yield Check(
        "cluster",
        "bad" if health["status"] == "red" or not supported else "good",
        told if supported else f"{told}; {' or '.join(SUPPORTED_MAJORS)} is needed",
    )


def _privileges(cluster: Cluster) -> Iterator[Check]:
    pattern = f"{cluster.names.prefix}-*"
    try:
        found = cluster.builder.security.has_privileges(
            cluster=["manage_index_templates"], index=[{"names": [pattern], "privileges": list(WRITER)}]
        )
    except ApiError as error:
        if error.status_code in (400, 404, 405, 500):
            yield Check("privileges", "note", "security is off on this server: everybody may do everything")
            return
        raise
    mine: Mapping[str, bool] = found["index"][pattern]
    user, lacking = found["username"], [name for name in READER if not mine[name]]
    if lacking:
        yield Check(
            "privileges", "bad", f"{found['username']} lacks {', '.join(lacking)} on {pattern}: no look-up works"
        )
        return
    missing = [name for name in WRITER if not mine[name]]
    if missing:
        yield Check(
            "privileges", "note", f"{found['username']} may look up, not build: no {', '.join(missing)} on {pattern}"
        )
        return
    templates = "may" if found["cluster"]["manage_index_templates"] else "may not (manage_index_templates)"
    yield Check("privileges", "good", f"{user} may look up and build, and {templates} install templates")


def _expensive(cluster: Cluster) -> Iterator[Check]:
    try:
        settings = cluster.builder.cluster.get_settings(include_defaults=True, flat_settings=True)
    except AuthorizationException:
        yield Check("expensive queries", "note", f"this user may not see {_EXPENSIVE} (privilege monitor)")
        return
    value = next(
        (
            str(settings[part][_EXPENSIVE])
            for part in ("transient", "persistent", "defaults")
            if _EXPENSIVE in settings.get(part, {})
        ),
        "true",
    )
    if value == "false":
        yield Check("expensive queries", "note", f"{_EXPENSIVE} is false: long strings are told apart by 16 bytes only")
    else:
        yield Check("expensive queries", "good", f"{_EXPENSIVE} is {value}")


def _templates(cluster: Cluster) -> Iterator[Check]:
    prefix, drifted, missing = cluster.names.prefix, [], []
    try:
        for name in (*COMPONENTS, *TEMPLATES):
            found = _template(cluster, name in COMPONENTS, f"{prefix}-{name}")
            if found is None:
                missing.append(f"{prefix}-{name}")
            elif _properties(found) != _properties(load(name, prefix).get("template", {})):
                drifted.append(f"{prefix}-{name}")
    except AuthorizationException:
        yield Check("templates", "note", "this user may not see templates; only a first build needs them")
        return
    if drifted:
        yield Check("templates", "bad", f"{', '.join(drifted)}: other fields than this version's: put mappings/ there")
    if missing:
        yield Check("templates", "note", f"not there yet: {', '.join(missing)}; the first build puts them there")
    if not drifted and not missing:
        yield Check("templates", "good", f"{len(COMPONENTS) + len(TEMPLATES)} templates as this version has them")


def _template(cluster: Cluster, component: bool, name: str) -> Mapping[str, Any] | None:
    try:
        if component:
            found = cluster.builder.cluster.get_component_template(name=name)["component_templates"]
            made: Mapping[str, Any] = found[0]["component_template"]["template"]
        else:
            listed = cluster.builder.indices.get_index_template(name=name)["index_templates"]
            made = listed[0]["index_template"].get("template", {})
    except (NotFoundError, IndexError):
        return None
    return made


def _properties(template: Mapping[str, Any]) -> Any:
    properties: Any = template.get("mappings", {}).get("properties", {})
    return properties


def _mappings(cluster: Cluster, states: list[State]) -> Iterator[Check]:
    """Whether the fields that look-ups use still have their original mapping."""
    wrong: list[str] = []
    with cluster.translated("reading mappings"):
        for state in states:
            try:
                found = cluster.mappings(state.generation)
            except NotFoundError:
                wrong.append(f"{state.definition.id}: its index {state.generation} is gone, build it again")
                continue
            for name, flaw in flaws(found, state.groups.values(), outdated=state.outdated > 0).items():
                told = f"fields {name}.* are not as they were made" if flaw.endswith(CHANGED) else f"the field {flaw}"
                wrong.append(f"{state.definition.id}: {told}")
            if state.outdated:
                yield Check("mappings", "note", f"{state.definition.id}: {state.advice(cluster.url)}")
            alias = cluster.names.objects(state.definition.id)
            if not cluster.builder.indices.exists_alias(name=alias, index=state.generation):
                wrong.append(f"{state.definition.id}: the alias {alias} does not show its index; a refresh repairs it")
    for text in wrong:
        yield Check("mappings", "bad", text)
    if not wrong:
        yield Check("mappings", "good", f"{len(states)} datasets have the fields they were built with")


def _unused(cluster: Cluster, states: list[State]) -> Iterator[Check]:
    """Indices that no dataset uses. A writer may be about to use one, so nothing removes them by itself."""
    with cluster.translated("listing indices"):
        there = cluster.builder.indices.get(index=cluster.names.all_objects, features=["aliases"]).body
    for index in sorted(set(there) - {state.generation for state in states}):
        yield Check(
            "indices",
            "note",
            f"{index} is used by no dataset: of a build under way, kept by a copy, or left by a writer that failed. "
            "Where nobody writes, es-skipping reindex --drop-old removes it",
        )


def _stale(states: list[State], stale_days: float) -> Iterator[Check]:
    now = time.time() * 1000
    for state in states:
        entry = state.entry
        days = (now - entry.refreshed) / _DAY_MS
        if days > stale_days:
            yield Check("datasets", "note", f"{entry.definition.id} was refreshed {days:.0f} days ago")
        if entry.failed:
            path, reason = entry.failed[0]
            yield Check(
                "datasets", "note", f"{entry.definition.id}: {len(entry.failed)} objects failed, {path}: {reason}"
            )
    yield Check("datasets", "good", f"{len(states)} datasets, {sum(state.entry.objects for state in states):,} objects")
