"""``es-skipping files``: lists the files that a filter needs; starts no Spark."""

from __future__ import annotations

import argparse
import dataclasses

from es_skipping.cli.output import Console
from es_skipping.cli.session import given_conf
from es_skipping.settings import PREFIX

__all__ = ["run_files"]


def run_files(args: argparse.Namespace, console: Console) -> int:
    import es_skipping as esk

    conf = {name: value for name, value in given_conf(args).items() if name.startswith(PREFIX)}
    found = esk.files(args.dataset, args.filter, store=conf or None, allow_empty=args.allow_empty)
    if console.form == "json":
        report = dataclasses.asdict(found.report)
        console.value({"files": list(found), "report": report})
    else:
        for file in found:
            console.text(file)
        console.tell(str(found.report))
    return 0
