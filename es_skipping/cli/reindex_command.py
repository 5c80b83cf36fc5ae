"""``es-skipping reindex``: copies metadata to another store, or to a new index of the same store."""

from __future__ import annotations

import argparse
import dataclasses
import os
from typing import Any

from es_skipping.catalog import DatasetEntry
from es_skipping.cli.output import Console
from es_skipping.cli.rotation import rotate
from es_skipping.cli.session import given_conf, key_values
from es_skipping.errors import DatasetError, SettingError
from es_skipping.indexes.registry import readable_id
from es_skipping.row_groups import row_groups_of
from es_skipping.settings import PREFIX, Settings
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.registry import open_store
from es_skipping.stores.reindex import reindex
from es_skipping.stores.urls import scheme_of

__all__ = ["run_reindex"]

_STORE_URL = PREFIX + "store.url"


def run_reindex(args: argparse.Namespace, console: Console) -> int:
    conf = given_conf(args)
    source = _store(conf, "--store")
    to_conf = conf | key_values(args.to_conf, "--to-conf")
    target = _store(to_conf | ({_STORE_URL: args.to} if args.to else {}), "--to")
    if args.into and (args.all or len(args.datasets) != 1):
        raise SettingError("--into renames one dataset: pass exactly one")
    chosen = _chosen(source, args.datasets, args.all)
    if args.drop_old:
        return _drop_old(target, [entry.definition.id for entry in chosen], args.dry_run, console)
    if args.to_key or args.from_key:
        return rotate(args, source, chosen, console)
    settings: dict[str, Any] = {}
    if args.shards is not None:
        settings["number_of_shards"] = args.shards
    if args.replicas is not None:
        settings["number_of_replicas"] = args.replicas
    rows = []
    if not chosen:
        console.tell(f"no datasets in the store {source.url}: nothing to copy")
    for entry in chosen:
        verb = "checking" if args.dry_run else "reindexing"
        with console.step(f"{verb} {entry.definition.id}") as progress:
            done = reindex(
                source,
                target,
                entry.definition.id,
                into=row_groups_of(args.into) if args.into and entry.definition.is_of_row_groups else args.into,
                index_settings=settings,
                throttle=args.throttle,
                sample=args.sample,
                progress=progress,
                dry_run=args.dry_run,
            )
        rows.append({name: value for name, value in dataclasses.asdict(done).items() if name != "seconds"})
        for index, count in done.forgotten.items():
            console.tell(
                f"{target.url} stores {readable_id(index)} less exactly for {count} of {done.sampled} sampled objects"
            )
        if done.superseded:
            console.tell(f"kept but no longer in use: {', '.join(done.superseded)}; --drop-old removes it")
    console.rows(rows)
    return 0


def _drop_old(target: MetadataStore, datasets: list[str], dry_run: bool, console: Console) -> int:
    rows = []
    for id in datasets:
        found = target.superseded(id) if dry_run else target.drop_superseded(id)
        rows += [{"dataset": id, "superseded": one, "dropped": not dry_run} for one in found]
    console.rows(rows, ["dataset", "superseded", "dropped"])
    return 0


def _store(conf: dict[str, str], option: str) -> MetadataStore:
    url = conf.get(_STORE_URL)
    if url is None:
        raise SettingError(f"pass {option}, the URL of the metadata store")
    return open_store(url, Settings(conf))


def _chosen(source: MetadataStore, named: list[str], everything: bool) -> list[DatasetEntry]:
    entries = source.datasets()
    if everything == bool(named):
        raise SettingError("pass either datasets or --all")
    if everything:
        return entries
    groups = {entry.definition.id: entry for entry in entries if entry.definition.is_of_row_groups}
    entries = [entry for entry in entries if not entry.definition.is_of_row_groups]
    chosen = []
    for name in named:
        plain = name.rstrip("/")
        place = plain if scheme_of(plain) else f"file:{os.path.abspath(plain)}"
        found = [
            e
            for e in entries
            if plain in (e.definition.id, e.definition.table, *e.definition.roots) or place in e.definition.roots
        ]
        if len(found) != 1:
            there = ", ".join(sorted(entry.definition.id for entry in entries)) or "none"
            raise DatasetError(f"{len(found)} datasets in {source.url} match {name!r}; the store holds {there}")
        chosen += found
        row_groups = groups.get(row_groups_of(found[0].definition.id))
        if row_groups is not None:
            chosen.append(row_groups)
    return chosen
