"""``es-skipping kibana export | import``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from es_skipping.cli.output import Console
from es_skipping.cli.session import given_conf
from es_skipping.errors import SettingError
from es_skipping.settings import Settings

if TYPE_CHECKING:
    from es_skipping.stores.elasticsearch.kibana import Kibana

__all__ = ["export_objects", "import_objects"]


def export_objects(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.stores.elasticsearch.kibana import saved_objects

    text = saved_objects() if args.kibana is None else _kibana(args).get()
    if args.file == "-":
        console.text(text.rstrip("\n"))
    else:
        try:
            Path(args.file).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        except OSError as error:
            raise SettingError(f"{args.file} cannot be written: {error.strerror}") from None
    console.tell(f"{len(text.splitlines())} saved objects")
    return 0


def import_objects(args: argparse.Namespace, console: Console) -> int:
    from es_skipping.stores.elasticsearch.kibana import saved_objects

    try:
        text = saved_objects() if args.file is None else Path(args.file).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"{args.file} cannot be read: {error.strerror}") from None
    console.value({"imported": _kibana(args).put(text), "kibana": args.kibana, "space": args.space or "default"})
    return 0


def _kibana(args: argparse.Namespace) -> Kibana:
    from es_skipping.stores.elasticsearch.kibana import Kibana

    return Kibana(args.kibana, Settings(given_conf(args)), args.space)
