"""What all datasets share in a cluster: the templates, which are the very files of ``mappings/``, and two indices."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from elasticsearch import AuthorizationException, BadRequestError, Elasticsearch

from es_skipping.errors import StoreError, StoreFormatError
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.elasticsearch.names import DEFAULT_PREFIX, Names

__all__ = ["COMPONENTS", "TEMPLATES", "install", "install_templates", "load", "shipped"]

COMPONENTS: Final = ("settings", "objects-mappings")
TEMPLATES: Final = ("objects", "datasets", "keys", "queries")


def load(name: str, prefix: str = DEFAULT_PREFIX) -> dict[str, Any]:
    """One of the shipped files, for a prefix of names.

    Examples
    --------
    >>> load("objects")["index_patterns"]
    ['es-skipping-objects-*']
    """
    text = _text(name)
    if prefix != DEFAULT_PREFIX:
        text = text.replace(f'"{DEFAULT_PREFIX}-', f'"{prefix}-').replace(f'"{DEFAULT_PREFIX}@', f'"{prefix}@')
    data: dict[str, Any] = json.loads(text)
    return data


def _text(name: str) -> str:
    return shipped(f"{DEFAULT_PREFIX}-{name}.json")


@cache
def shipped(file: str) -> str:
    """A file of ``mappings/``, from the installed package or from the folder beside it in a source tree."""
    packaged = files("es_skipping") / "_mappings" / file
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    beside = Path(__file__).parents[3] / "mappings" / file
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    raise StoreError(f"the file {file} is missing from this installation of es_skipping: install it again")


def install(client: Elasticsearch, names: Names) -> None:
    """Put the templates and the two indices that all datasets share into the cluster, where they are missing."""
    datasets = bool(client.indices.exists_alias(name=names.datasets))
    keys = bool(client.indices.exists(index=names.keys))
    # Once the shared indices are there, so were the templates: a writer need not be allowed to see them.
    install_templates(client, names.prefix, needed=not (datasets and keys))
    if not datasets:
        _create(client, f"{names.datasets}-000001", aliases={names.datasets: {"is_write_index": True}})
    if not keys:
        _create(client, names.keys)
    _add_fields(client, names.datasets)


def _create(client: Elasticsearch, index: str, **options: Any) -> None:
    try:
        client.indices.create(index=index, **options)
    except BadRequestError as error:
        if error.error != "resource_already_exists_exception":
            raise


def install_templates(client: Elasticsearch, prefix: str = DEFAULT_PREFIX, *, needed: bool = True) -> None:
    """Put the templates into the cluster, unless they are there already in this format.

    Parameters
    ----------
    needed
        Whether it is an error that this user may not do so.

    Raises
    ------
    StoreFormatError
        Those of a newer version are there.
    StoreError
        They are missing and this user may not put them there.
    """
    format, revision = _installed(client, f"{prefix}-objects")
    if format > FORMAT_VERSION:
        raise StoreFormatError(
            f"the cluster's templates {prefix}-* are in format {format}, this version of es_skipping writes "
            f"{FORMAT_VERSION}: upgrade it here"
        )
    if (format, revision) >= (FORMAT_VERSION, load("objects")["_meta"]["revision"]):
        return
    try:
        for name in COMPONENTS:
            body = load(name, prefix)
            client.cluster.put_component_template(
                name=f"{prefix}-{name}", template=body["template"], meta=body["_meta"]
            )
        for name in TEMPLATES[
            ::-1
        ]:  # the template that marks the installation comes last, so half an installation does not count
            body = load(name, prefix)
            client.indices.put_index_template(
                name=f"{prefix}-{name}",
                index_patterns=body["index_patterns"],
                priority=body["priority"],
                allow_auto_create=body["allow_auto_create"],
                composed_of=body["composed_of"],
                ignore_missing_component_templates=body["ignore_missing_component_templates"],
                template=body.get("template"),
                meta=body["_meta"],
            )
    except AuthorizationException:
        if format or not needed:  # the templates are there, if only with fewer fields
            return
        raise StoreError(
            f"the index templates {prefix}-* are not in the cluster and this user may not put them there (privilege "
            "manage_index_templates): let an administrator build one dataset first, or put the files of mappings/ there"
        ) from None


def _add_fields(client: Elasticsearch, datasets: str) -> None:
    """Add the fields that the registry of datasets lacks if an earlier version made it."""
    properties = load("datasets")["template"]["mappings"]["properties"]
    for index, reply in client.indices.get_mapping(index=datasets).body.items():
        there = reply["mappings"].get("properties", {})
        if lacking := {name: one for name, one in properties.items() if name not in there}:
            client.indices.put_mapping(index=index, properties=lacking)


def _installed(client: Elasticsearch, name: str) -> tuple[int, int]:
    """Format and revision of the cluster's templates; zeros where none are seen."""
    try:
        reply = client.options(ignore_status=404).indices.get_index_template(name=name)
    except AuthorizationException:
        return 0, 0
    for found in reply.body.get("index_templates", []):
        meta = found["index_template"].get("_meta", {})
        format, revision = meta.get("format"), meta.get("revision")
        return format if isinstance(format, int) else 0, revision if isinstance(revision, int) else 0
    return 0, 0
