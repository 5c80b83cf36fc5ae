"""Who may import whom: the rooms of the package, and the doors between them.

``predicates`` and ``clauses`` are pure Python; ``indexes`` know no store; ``stores`` and ``lookup`` know no Spark;
``spark`` joins them, and ``build`` makes what they ask.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import es_skipping

PACKAGE = Path(es_skipping.__file__).parent
ROOT = PACKAGE.parent
LONGEST = 450
"""Lines of one file: "not much over 400"."""

PUBLIC = {
    # errors
    *("ColumnError", "DatasetError", "EsSkippingError", "FilterError", "IndexDefinitionError"),
    *("ProtectionError", "SettingError", "StoreConflict", "StoreError", "StoreFormatError", "StoreUnavailable"),
    # sessions and datasets
    *(
        "Dataset",
        "RefreshResult",
        "configure",
        "declare_function",
        "disable",
        "enable",
        "index_files",
        "indexes",
        "is_enabled",
    ),
    *("list_indexes", "read"),
    # index types
    *(
        "BloomFilter",
        "Formatted",
        "GapList",
        "GeoBox",
        "GeometryBox",
        "Hybrid",
        "MetricDistance",
        "MinMax",
        "Prefix",
        "Suffix",
        "ValueList",
    ),
    # reports
    *("advise", "explain", "indicators", "last_query", "observe", "queries", "why_not"),
    # engines without Spark
    "files",
}

HEAVY = ("pyspark", "py4j", "pyarrow", "elasticsearch", "numpy", "pandas", "shapely")

_PURE = ("errors", "predicates", "clauses", "catalog", "row_groups")
_KNOWING = (*_PURE, "settings", "indexes", "stores", "lookup")
_RUNNING = (*_KNOWING, "workload", "spark", "build")

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "predicates": ("errors", "predicates"),
    "clauses": ("errors", "predicates", "clauses"),
    "row_groups": ("errors",),
    "catalog": _PURE,
    "data_files": ("errors", "catalog"),
    "indexes": (*_PURE, "indexes"),
    "stores": (*_PURE, "settings", "stores"),
    "lookup": _KNOWING,
    "helper": (*_KNOWING, "helper"),
    "spark": (*_KNOWING, "spark"),
    "workload": (*_PURE, "stores", "workload"),
    "build": (*_RUNNING, "reports", "data_files"),
    "reports": (*_RUNNING, "reports"),
    "engines": (*_KNOWING, "engines", "data_files", "reports.units"),
    "layout": (*_RUNNING, "reports", "layout"),
    "sql": (*_RUNNING, "reports", "sql"),
    "session": ("build", "spark", "sql"),
    "testing": (*_PURE, "indexes", "stores", "testing"),
}
"""For each room the rooms whose modules it may import, lazily or not. Types of a checker's eyes only are free."""

NEVER: dict[str, tuple[str, ...]] = {
    "predicates": HEAVY,
    "clauses": HEAVY,
    "row_groups": HEAVY,
    "catalog": HEAVY,
    "data_files": ("pyspark", "py4j", "elasticsearch"),
    "indexes": ("elasticsearch",),
    "stores": ("pyspark", "py4j"),
    "lookup": ("pyspark", "py4j"),
    "workload": HEAVY,
    "engines": ("pyspark", "py4j", "elasticsearch"),
    "helper": ("pyspark", "py4j"),
    "testing": ("pyspark", "py4j", "elasticsearch"),
}


class Imported(NamedTuple):
    """One import of one module, and whether only a type checker sees it."""

    file: Path
    line: int
    module: str
    typing_only: bool


def modules_of(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py")) or [PACKAGE / f"{room}.py"]


def imports_of(file: Path) -> Iterator[Imported]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are written in full here"
            assert node.module is not None
            # ``from es_skipping.stores import base`` imports a module of that room as well as the room itself.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            yield Imported(file, node.lineno, name, id(node) in guarded)


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_the_rooms_it_may(room: str) -> None:
    allowed = tuple(f"es_skipping.{name}" for name in MAY_IMPORT[room])
    wrong = [
        f"{found.file.relative_to(ROOT)}:{found.line} imports {found.module}"
        for file in modules_of(room)
        for found in imports_of(file)
        if found.module.startswith("es_skipping.")
        and found.module.count(".") >= 1
        and not found.typing_only
        and not found.module.startswith(allowed)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", sorted(NEVER))
def test_a_room_never_imports_a_library_that_is_not_its_business(room: str) -> None:
    strict = room in ("predicates", "clauses")  # here not even for types
    wrong = [
        f"{found.file.relative_to(ROOT)}:{found.line} imports {found.module}"
        for file in modules_of(room)
        for found in imports_of(file)
        if found.module.split(".")[0] in NEVER[room] and (strict or not found.typing_only)
    ]
    assert not wrong, "\n".join(wrong)


def _imports_among(folder: Path) -> dict[str, set[str]]:
    """By module what it imports of the others, lazily or for types only as well."""
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in folder.rglob("*.py")
    }
    found = {name: {each.module for each in imports_of(file)} & files.keys() for name, file in files.items()}
    # ``from package import module`` is an import of the module, not of the package.
    packages = {name: {one.rpartition(".")[0] for one in modules} for name, modules in found.items()}
    return {name: modules - packages[name] - {name} for name, modules in found.items()}


@pytest.mark.parametrize("folder", ["es_skipping", "benchmarks"])
def test_no_imports_go_round_in_a_circle(folder: str) -> None:
    left = _imports_among(ROOT / folder)
    assert left
    while free := {name for name, imported in left.items() if not imported & left.keys()}:
        left = {name: imported for name, imported in left.items() if name not in free}
    importers = {name for imported in left.values() for name in imported}  # the rest only leads to a circle
    assert not left, f"a circle is among {sorted(importers & left.keys())}"


def test_nothing_but_the_command_line_itself_imports_the_command_line() -> None:
    wrong = [
        f"{found.file.relative_to(ROOT)}:{found.line}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if "cli" not in file.relative_to(PACKAGE).parts
        for found in imports_of(file)
        if found.module.startswith("es_skipping.cli")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        (["es_skipping"], ("pyspark", "py4j", "pyarrow", "elasticsearch")),
        (["es_skipping.predicates", "es_skipping.clauses"], ("pyspark", "py4j", "pyarrow", "elasticsearch")),
        (["es_skipping.indexes.registry", "es_skipping.indexes.minmax"], ("elasticsearch", "es_skipping.stores")),
        (["es_skipping.stores.registry", "es_skipping.stores.parquet.store"], ("pyspark", "py4j", "es_skipping.spark")),
        (["es_skipping.stores.elasticsearch.store"], ("pyspark", "py4j", "es_skipping.spark")),
        (["es_skipping.lookup"], ("pyspark", "py4j", "es_skipping.spark", "es_skipping.build")),
        (["es_skipping.engines.files"], ("pyspark", "py4j", "pandas", "es_skipping.spark", "es_skipping.build")),
        (["es_skipping.helper"], ("pyspark", "py4j", "es_skipping.spark", "es_skipping.build")),
        (["es_skipping.cli.arguments"], ("pyspark", "py4j", "pyarrow", "elasticsearch")),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_an_import_brings_along(modules: list[str], unwanted: tuple[str, ...]) -> None:
    every = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for module in modules
        for file in ([*(ROOT / module.replace(".", "/")).glob("*.py")] if module.count(".") == 1 else [])
    ]
    script = f"import sys, importlib\nfor m in {[*modules, *every]!r}: importlib.import_module(m)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = done.stdout.split()
    assert not [name for name in loaded if name.startswith(unwanted)]


def test_the_public_names_are_exactly_these() -> None:
    assert set(es_skipping.__all__) == PUBLIC
    assert len(es_skipping.__all__) == len(PUBLIC)
    for name in PUBLIC:
        assert getattr(es_skipping, name).__doc__, f"{name} has no docstring"


def test_indexes_is_a_package_and_the_old_name_of_list_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    import es_skipping.indexes.minmax

    assert es_skipping.indexes.minmax.MinMax is es_skipping.MinMax
    monkeypatch.setattr("es_skipping.build.dataset.list_indexes", lambda spark: ("listed", spark))
    with pytest.warns(DeprecationWarning, match="list_indexes") as told:
        assert es_skipping.indexes("spark") == ("listed", "spark")  # type: ignore[operator, comparison-overlap]
    assert told[0].filename == __file__


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'min_max'"):
        es_skipping.min_max  # noqa: B018


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Minmax", "MinMax"),
        ("min_max", "MinMax"),
        ("Valuelist", "ValueList"),
        ("enabel", "enable"),
        ("lay_out", "layout"),
    ],
)
def test_a_misspelt_public_name_names_the_nearest(written: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{written}'; did you mean '{meant}'\\?"):
        getattr(es_skipping, written)


def test_a_name_that_is_near_to_none_names_none() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'$"):
        es_skipping.xyzzy  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(es_skipping, "__wrapped__")


def fresh(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


def test_help_is_short_and_names_what_is_public() -> None:
    """`pydoc` would print a page for each class."""
    lines = fresh("import pydoc, es_skipping; print(pydoc.plain(pydoc.render_doc(es_skipping)))").splitlines()
    assert len(lines) < 80
    words = set(re.findall(r"\w+", "\n".join(lines)))
    assert PUBLIC - {"indexes"} - words == set()


def test_completion_offers_public_names_only() -> None:
    import rlcompleter

    completer = rlcompleter.Completer({"esk": es_skipping})
    offered = {match.removeprefix("esk.").rstrip("()") for match in iter_completions(completer, "esk.")}
    assert offered == PUBLIC | {"layout"}


def iter_completions(completer: Any, text: str) -> Iterator[str]:
    for state in range(1000):
        match = completer.complete(text, state)
        if match is None:
            return
        yield match


def test_layout_needs_no_import_of_its_own_and_costs_none() -> None:
    told = fresh("import sys, es_skipping as e; print('es_skipping.layout' in sys.modules, e.layout.SOP.__name__)")
    assert told == "False SOP"


def test_a_star_import_brings_every_public_name() -> None:
    names = fresh("import sys\nfrom es_skipping import *\nprint(*(n for n in dir() if n[0] != '_'))").split()
    assert set(names) - {"sys"} == PUBLIC


def test_no_file_is_long() -> None:
    lengths = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines())
        for file in PACKAGE.rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(file.relative_to(ROOT))
        for file in PACKAGE.rglob("*.py")
        if file.read_text(encoding="utf-8").strip()
        and ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) is None
    ]
    assert not silent


def test_library_code_never_prints() -> None:
    printing = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in PACKAGE.rglob("*.py")
        if "cli" not in file.relative_to(PACKAGE).parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not printing


def test_every_error_is_raised_somewhere() -> None:
    """A public error that nothing raises is one that users write an ``except`` for in vain."""
    from es_skipping import errors

    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "errors.py"]
    made = {name for name in errors.__all__ if any(f"{name}(" in source for source in sources)}
    assert made == set(errors.__all__)
