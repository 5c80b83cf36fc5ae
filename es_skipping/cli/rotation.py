"""``es-skipping reindex --to-key``: gives protected indexes a new key."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from es_skipping.catalog import DatasetDefinition, DatasetEntry
from es_skipping.cli.output import Console
from es_skipping.cli.session import spark_session
from es_skipping.errors import SettingError
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.protection.rotation import Rotated, hashed_among, renewed, rotate_sealed, with_new_key

__all__ = ["rotate"]


def rotate(args: argparse.Namespace, store: MetadataStore, chosen: Sequence[DatasetEntry], console: Console) -> int:
    """Rotate the keys of these datasets; Spark starts only if an index must be built anew from the data."""
    if not args.to_key:
        raise SettingError("--from-key needs --to-key, the reference of the new key")
    if args.to or args.into or args.to_conf or args.shards is not None or args.replicas is not None:
        raise SettingError("--to-key rotates keys in place: leave out --to, --to-conf, --into, --shards and --replicas")
    rows: list[Rotated] = []
    planned: list[Rotated] = []
    files: list[DatasetDefinition] = []
    for entry in chosen:
        before = entry.definition
        new = renewed(before, with_new_key(before, args.to_key, args.from_key))
        if not hashed_among(new):
            with console.step(f"rotating {before.id}") as progress:
                rows.append(_sealed(args, store, before.id, progress))
            continue
        planned.append(Rotated.of(entry, new))
        if not before.is_of_row_groups:
            files.append(before)
    if args.dry_run:
        rows += planned
    elif files:
        rows += _from_data(args, files, console)
    console.rows(
        [dataclasses.asdict(one) for one in rows], ["dataset", "format", "snapshot", "rotated", "objects", "superseded"]
    )
    for one in rows:
        if one.superseded:
            console.tell(f"kept for readers without {args.to_key}: {', '.join(one.superseded)}; --drop-old removes it")
    return 0


def _sealed(args: argparse.Namespace, store: MetadataStore, id: str, progress: Callable[..., None]) -> Rotated:
    return rotate_sealed(store, id, args.to_key, from_key=args.from_key, progress=progress, dry_run=args.dry_run)


def _from_data(args: argparse.Namespace, datasets: Sequence[DatasetDefinition], console: Console) -> list[Rotated]:
    import es_skipping as esk
    from es_skipping.build.rotation import rotate_keys

    done = []
    with spark_session(args) as spark:
        for definition in datasets:
            where: dict[str, Any] = {"path": list(definition.roots)}
            if definition.table is not None:
                where = {"table": definition.table}
            with console.step(f"building {definition.id} anew") as progress:
                dataset = esk.Dataset(spark, **where)
                done.append(rotate_keys(dataset, args.to_key, from_key=args.from_key, progress=progress))
    return done
