"""The examples in the README run with nothing but what it tells the reader to install."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.metadata import distributions, packages_distributions, requires
from pathlib import Path

import pytest

from tests.cli.running import IN_PAGES
from tests.processes import run_python

ROOT = Path(__file__).resolve().parent.parent.parent


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


HIDE = """
import os, sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    hidden = frozenset(os.environ["HIDDEN_MODULES"].split())

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname in cls.hidden else super().find_spec(fullname, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def run_example(code: str, folder: Path, without: Sequence[str] = ()) -> str:
    """Run it in a fresh process whose spark-defaults make a small session.

    Neither it nor Spark's workers can import the modules in ``without``.
    """
    defaults = folder / "conf"
    defaults.mkdir()
    lines = [f"{key} {value}" for key, value in IN_PAGES.items()]
    (defaults / "spark-defaults.conf").write_text("\n".join(lines), encoding="utf-8")
    path = os.pathsep.join(entry for entry in sys.path if entry)
    (defaults / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    path = os.pathsep.join([str(defaults), path])
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(defaults),
        "PYTHONPATH": path,
        "HIDDEN_MODULES": " ".join(without),
    }
    return run_python(code, folder, environment=environment).stdout


def test_the_readme(tmp_path: Path) -> None:
    (first,) = python_blocks(ROOT / "README.md")
    assert len(first.splitlines()) <= 15
    laid_out = """
from es_skipping import layout
queries = ["hour(ts) = 9", "hour(ts) >= 20 AND id % 7 = 0"] * 50
sop = layout.SOP(esk.Dataset(spark, "events"), min_rows=500)
print(sop.fit(layout.QueryLog.from_filters(sop.df, queries)))
sop.write("events_by_query")
from tests.spark.objects_read import num_files
df = spark.read.parquet("events_by_query")
found = df.where("hour(ts) = 9")
print("rows", len(found.collect()), "objects", len(df.inputFiles()), "read", sum(num_files(found)))
"""
    code = f"{first}\nprint('== layout')\n{laid_out}"
    out, _, layout = run_example(code, tmp_path, without=not_needed("es-skipping", "spark")).partition("== layout")
    assert out.count("39999") == 3, "the query's own result"
    assert re.findall(r"(\d+) of 100 objects", out) == ["0", "0", "95"], out
    assert "hour(ts) = 9" in layout, "fit names the feature"
    ((rows, objects, read),) = re.findall(r"rows (\d+) objects (\d+) read (\d+)", layout)
    assert int(rows) == 695 * 6, "an hour of each day"
    assert int(read) < int(objects) / 10


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(distribution: str, extra: str) -> set[str]:
    """What is installed with a distribution and one of its extras, itself included."""
    here = {canonical(each.name) for each in distributions()}
    found: set[str] = set()
    waiting = [canonical(distribution)]
    while waiting:
        name = waiting.pop()
        if name in found or name not in here:
            continue
        found.add(name)
        asked = name == canonical(distribution)
        lines = [
            line
            for line in requires(name) or ()
            if "extra ==" not in line or (asked and re.search(rf"extra == ['\"]{extra}['\"]", line))
        ]
        waiting += [canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines]
    return found


def not_needed(distribution: str, extra: str) -> list[str]:
    """The modules that are here, but would not be for a user who installs that distribution with the extra alone."""
    wanted = needed(distribution, extra)
    return [
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not wanted & {canonical(owner) for owner in owners}
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_pages_have_examples(page: str) -> None:
    assert python_blocks(ROOT / page)
