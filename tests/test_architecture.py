"""Who may import whom: the rooms of the package, and the doors between them.

``predicates`` and ``clauses`` are pure Python; ``indexes`` know no store; ``stores`` know no Spark; ``spark`` joins
them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import es_skipping

PACKAGE = Path(es_skipping.__file__).parent
ROOT = PACKAGE.parent
LONGEST = 450
"""Lines of one file: "not much over 400"."""

PUBLIC = {
    # errors
    *("ColumnError", "DatasetError", "EsSkippingError", "IndexDefinitionError", "SettingError"),
    *("StoreConflict", "StoreError", "StoreFormatError", "StoreUnavailable"),
    # sessions and datasets
    *("Dataset", "RefreshResult", "configure", "declare_function", "disable", "enable", "indexes", "is_enabled"),
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
    *("explain", "indicators", "last_query", "observe", "queries", "why_not"),
}

HEAVY = ("pyspark", "py4j", "pyarrow", "elasticsearch", "numpy", "pandas", "shapely")

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "predicates": ("errors", "predicates"),
    "clauses": ("errors", "predicates", "clauses"),
    "indexes": ("errors", "predicates", "clauses", "indexes"),
    "stores": ("errors", "settings", "predicates", "clauses", "stores"),
    "reports": ("errors", "settings", "predicates", "clauses", "indexes", "stores", "spark", "reports"),
    "layout": ("errors", "settings", "predicates", "clauses", "indexes", "stores", "spark", "reports", "layout"),
    "spark": ("errors", "settings", "predicates", "clauses", "indexes", "stores", "spark", "reports"),
    "testing": ("errors", "predicates", "clauses", "indexes", "stores", "testing"),
}
"""For each room the rooms whose modules it may import, lazily or not. Types of a checker's eyes only are free."""

NEVER: dict[str, tuple[str, ...]] = {
    "predicates": HEAVY,
    "clauses": HEAVY,
    "indexes": ("elasticsearch",),
    "stores": ("pyspark", "py4j"),
    "testing": ("pyspark", "py4j", "elasticsearch"),
}


class Imported(NamedTuple):
    """One import of one module, and whether only a type checker sees it."""

    file: Path
    line: int
    module: str
    typing_only: bool


def modules_of(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py"))


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
        (["es_skipping.stores.open", "es_skipping.stores.parquet.store"], ("pyspark", "py4j", "es_skipping.spark")),
        (["es_skipping.stores.elasticsearch.store"], ("pyspark", "py4j", "es_skipping.spark")),
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


def test_indexes_is_a_package_and_a_function() -> None:
    import es_skipping.indexes.minmax

    assert es_skipping.indexes.minmax.MinMax is es_skipping.MinMax
    assert callable(es_skipping.indexes)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'min_max'"):
        es_skipping.min_max  # noqa: B018


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
