from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes import registry
from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.minmax import MinMax
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.valuelist import ValueList
from es_skipping.predicates.types import parse_type
from es_skipping.testing import IndexContract


@pytest.fixture(autouse=True)
def _leave_no_type_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})  # nor let those of other tests in


@pytest.mark.parametrize(
    ("index", "columns", "id"),
    [
        (MinMax("ts"), ["ts"], "minmax(ts)"),
        (Prefix("db_name", length=15), ["db_name"], "prefix(db_name,length=15)"),
        (Prefix("p", 3, limit=5), ["p"], "prefix(p,length=3,limit=5)"),
        (ValueList("city"), ["city"], "valuelist(city)"),
        (GeoBox("lat", "lon"), ["lat", "lon"], "geobox(lat,lon)"),
        (GeoBox("lat", "lon", boxes=4), ["lat", "lon"], "geobox(lat,lon,boxes=4)"),
    ],
)
def test_ids_are_readable(index: Any, columns: list[str], id: str) -> None:
    assert registry.index_id(index, columns) == id


def test_all_of_ours_are_found() -> None:
    assert registry.index_types() == [
        "BloomFilter",
        "Features",
        "Formatted",
        "GapList",
        "GeoBox",
        "GeometryBox",
        "Hybrid",
        "Induced",
        "MetricDistance",
        "MinMax",
        "Prefix",
        "Remembered",
        "Suffix",
        "ValueList",
    ]
    for name in registry.index_types():
        assert registry.index_class(name).__name__ == name


def test_each_of_ours_has_a_page_and_passes_the_contract() -> None:
    """What CONTRIBUTING asks of a new index type, beside its module and its line in the registry."""
    names = registry.index_types()  # before the modules of tests below register types of theirs
    pages = Path(__file__).parents[2] / "docs" / "reference" / "indexes"
    contracts = [
        cls
        for file in Path(__file__).parent.glob("test_*.py")
        if file != Path(__file__) and "Contract" in file.read_text(encoding="utf-8")
        for cls in vars(importlib.import_module(f"tests.indexes.{file.stem}")).values()
        if isinstance(cls, type) and issubclass(cls, IndexContract) and cls.__name__.startswith("Test")
    ]
    tested = {type(index).__name__ for cls in contracts for index, _ in cls.setups}
    for name in names:
        page = f"{name.lower()}.md"
        assert (pages / page).exists(), f"write docs/reference/indexes/{page}"
        assert f"[{name}]({page})" in (pages / "README.md").read_text(encoding="utf-8"), f"{name} has no row there"
        assert name in tested, f"subclass IndexContract for {name} in tests/indexes"


def test_an_unknown_type_is_named_with_what_there_is() -> None:
    with pytest.raises(IndexDefinitionError, match=r"'HyperLog'.*MinMax"):
        registry.index_class("HyperLog")


def test_a_type_of_ones_own() -> None:
    @registry.register
    @dataclass(frozen=True)
    class Largest(MinMax):
        pass

    assert registry.index_class("Largest") is Largest
    assert registry.register(Largest) is Largest
    definition = IndexDefinition("largest(x)", "Largest", ("x",), "intervals", parse_type("int"))
    assert registry.from_definition(definition) == Largest("x")


def test_a_name_is_given_once() -> None:
    other = type("MinMax", (MinMax,), {})
    with pytest.raises(IndexDefinitionError, match="exists already"):
        registry.register(other)
    with pytest.raises(IndexDefinitionError, match="not an index type"):
        registry.register(int)  # type: ignore[type-var]


def test_an_installed_package_brings_types(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "Theirs"

        def __init__(self, found: Any) -> None:
            self.load = lambda: found

    theirs = type("Theirs", (MinMax,), {})
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda group, name="Theirs": [Point(theirs)] if name == "Theirs" else [],
    )
    assert "Theirs" in registry.index_types()
    assert registry.index_class("Theirs") is theirs
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "entry_points", lambda group, name="Theirs": [Point(print)])
    with pytest.raises(IndexDefinitionError, match="Theirs"):
        registry.index_class("Theirs")


def test_a_definition_of_another_version_is_told() -> None:
    definition = IndexDefinition(
        "minmax(x)",
        "MinMax",
        ("x",),
        "intervals",
        parse_type("int"),
        parameters={"sharpness": 3},
    )
    with pytest.raises(IndexDefinitionError, match="another version"):
        registry.from_definition(definition)
