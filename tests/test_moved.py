"""Modules that users may have imported, under the names that they had: each import works and says the new name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from es_skipping.moved import MOVED

ROOT = Path(__file__).resolve().parent.parent

DOCUMENTED = {
    "es_skipping.indexes.column": "ColumnIndex",
    "es_skipping.indexes.shapes": "region_clause",
    "es_skipping.indexes.summaries": "Distinct",
    "es_skipping.layout.groups.picture": "group_chart",
    "es_skipping.spark.built_with": "compatible",
    "es_skipping.spark.dataset": "Dataset",
    "es_skipping.spark.verdict": "read_filters",
    "es_skipping.stores.open": "open_store",
}
"""Modules that docs or examples named, with a name that each had."""


def forget(old: str) -> None:
    sys.modules.pop(old, None)


@pytest.mark.parametrize(("old", "new"), MOVED.items(), ids=lambda name: name.removeprefix("es_skipping."))
def test_a_module_is_found_by_its_old_name(old: str, new: str) -> None:
    assert not (ROOT / f"{old.replace('.', '/')}.py").exists()
    forget(old)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}$"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert (module.__name__, module.__spec__.name if module.__spec__ else None) == (new, new)


def test_a_moved_module_can_be_loaded_again() -> None:
    """In a process of its own: what a reload defines anew is no longer what the rest of this one holds."""
    script = f"import importlib, warnings; warnings.simplefilter('ignore')\nfor old in {list(MOVED)}:\n"
    script += "    module = importlib.import_module(old)\n    assert importlib.reload(module) is module, old"
    subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)


@pytest.mark.parametrize(("old", "name"), DOCUMENTED.items())
def test_what_was_documented_is_there(old: str, name: str) -> None:
    script = f"import warnings; warnings.simplefilter('error', DeprecationWarning)\ntry:\n    import {old}\n"
    script += "except DeprecationWarning as warning:\n    print(warning)\n"
    script += f"warnings.simplefilter('ignore')\nfrom {old} import {name}\nprint({name}.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    warning, found = done.stdout.splitlines()
    assert warning.startswith(f"{old} is now es_skipping.")
    assert found == name


def test_the_warning_names_the_importers_line() -> None:
    forget("es_skipping.spark.guard")
    with pytest.warns(DeprecationWarning, match=r"now es_skipping\.lookup\.guard") as told:
        import es_skipping.spark.guard  # type: ignore[import-not-found] # noqa: F401
    assert told[0].filename == __file__


def test_other_modules_that_are_not_there_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("es_skipping.spark.nothing")


def test_names_that_became_the_catalogs_are_where_they_were() -> None:
    from es_skipping import catalog
    from es_skipping.stores import base

    for name in ("DatasetDefinition", "DatasetEntry", "IndexDefinition", "ObjectId", "ObjectMetadata"):
        assert getattr(base, name) is getattr(catalog, name)
