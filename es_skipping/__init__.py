"""Data skipping for Spark: queries open only the files that can hold a matching row.

>>> import es_skipping as esk
>>> spark = esk.configure(SparkSession.builder).getOrCreate()           # doctest: +SKIP
>>> esk.enable(spark)                                                    # doctest: +SKIP
>>> esk.Dataset(spark, "/lake/events").create_indexes(esk.MinMax("ts"))  # doctest: +SKIP

Sessions     configure, enable, disable, is_enabled
Datasets     Dataset, RefreshResult, read, list_indexes, index_files (without Spark), declare_function
Index types  MinMax, GapList, ValueList, BloomFilter, Hybrid, Prefix, Suffix, Formatted, GeoBox, GeometryBox,
             MetricDistance
Reports      observe, last_query, queries, explain, why_not, advise, indicators
Engines      files
Layouts      layout.SOP, layout.GSOP, layout.GSOPR; see help(es_skipping.layout)
Errors       EsSkippingError and below it ColumnError, DatasetError, FilterError, IndexDefinitionError,
             ProtectionError, SettingError, StoreError, StoreConflict, StoreFormatError, StoreUnavailable

`help(es_skipping.Dataset)` says more, and so for each name. Names load on first use: `es_skipping.predicates` and
`es_skipping.clauses` need neither Spark nor a store, and Spark's Python workers load only the collectors.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping import layout as layout
    from es_skipping.build.arrow.index_files import index_files
    from es_skipping.build.dataset import Dataset, list_indexes
    from es_skipping.build.results import RefreshResult
    from es_skipping.build.stored_listing import read
    from es_skipping.engines.files import files
    from es_skipping.errors import (
        ColumnError,
        DatasetError,
        EsSkippingError,
        FilterError,
        IndexDefinitionError,
        ProtectionError,
        SettingError,
        StoreConflict,
        StoreError,
        StoreFormatError,
        StoreUnavailable,
    )
    from es_skipping.indexes.bloomfilter import BloomFilter
    from es_skipping.indexes.formatted import Formatted
    from es_skipping.indexes.gaplist import GapList
    from es_skipping.indexes.geobox import GeoBox
    from es_skipping.indexes.geometrybox import GeometryBox
    from es_skipping.indexes.hybrid import Hybrid
    from es_skipping.indexes.metricdistance import MetricDistance
    from es_skipping.indexes.minmax import MinMax
    from es_skipping.indexes.prefix import Prefix
    from es_skipping.indexes.suffix import Suffix
    from es_skipping.indexes.valuelist import ValueList
    from es_skipping.reports import advise, explain, indicators, last_query, observe, queries, why_not
    from es_skipping.session import enable
    from es_skipping.spark.functions import declare_function
    from es_skipping.spark.session import configure, disable, is_enabled

__version__ = "0.1.0"

_HOMES = {
    "es_skipping.engines.files": ("files",),
    "es_skipping.errors": (
        "ColumnError",
        "DatasetError",
        "EsSkippingError",
        "FilterError",
        "IndexDefinitionError",
        "ProtectionError",
        "SettingError",
        "StoreConflict",
        "StoreError",
        "StoreFormatError",
        "StoreUnavailable",
    ),
    "es_skipping.indexes.bloomfilter": ("BloomFilter",),
    "es_skipping.indexes.formatted": ("Formatted",),
    "es_skipping.indexes.gaplist": ("GapList",),
    "es_skipping.indexes.geobox": ("GeoBox",),
    "es_skipping.indexes.geometrybox": ("GeometryBox",),
    "es_skipping.indexes.hybrid": ("Hybrid",),
    "es_skipping.indexes.metricdistance": ("MetricDistance",),
    "es_skipping.indexes.minmax": ("MinMax",),
    "es_skipping.indexes.prefix": ("Prefix",),
    "es_skipping.indexes.suffix": ("Suffix",),
    "es_skipping.indexes.valuelist": ("ValueList",),
    "es_skipping.reports": ("advise", "explain", "indicators", "last_query", "observe", "queries", "why_not"),
    "es_skipping.build.arrow.index_files": ("index_files",),
    "es_skipping.build.dataset": ("Dataset", "list_indexes"),
    "es_skipping.build.results": ("RefreshResult",),
    "es_skipping.build.stored_listing": ("read",),
    "es_skipping.session": ("enable",),
    "es_skipping.spark.functions": ("declare_function",),
    "es_skipping.spark.session": ("configure", "disable", "is_enabled"),
}

__all__ = [
    "BloomFilter",
    "ColumnError",
    "Dataset",
    "DatasetError",
    "EsSkippingError",
    "FilterError",
    "Formatted",
    "GapList",
    "GeoBox",
    "GeometryBox",
    "Hybrid",
    "IndexDefinitionError",
    "MetricDistance",
    "MinMax",
    "Prefix",
    "ProtectionError",
    "RefreshResult",
    "SettingError",
    "StoreConflict",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailable",
    "Suffix",
    "ValueList",
    "advise",
    "configure",
    "declare_function",
    "disable",
    "enable",
    "explain",
    "files",
    "index_files",
    "indexes",
    "indicators",
    "is_enabled",
    "last_query",
    "list_indexes",
    "observe",
    "queries",
    "read",
    "why_not",
]


class _Names(list[str]):
    """An `__all__` that keeps `help` short: `pydoc` prints a page for each class that is ``in __all__``, 2,850 lines in
    all. The module's docstring lists the names instead. Other code iterates over the list."""

    def __contains__(self, name: object) -> bool:
        return False


if not TYPE_CHECKING:
    __all__ = _Names(__all__)

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("layout",)
"""Packages that are loaded when they are first used."""


class _IndexesPackage(_ModuleType):
    """Makes the package `es_skipping.indexes` callable, as the old name of `list_indexes`: importing any index type
    puts the package under that name, whatever was there before."""

    def __call__(self, spark: SparkSession) -> DataFrame:
        import warnings

        from es_skipping.build.dataset import list_indexes

        warnings.warn(
            "es_skipping.indexes(spark) is deprecated: call list_indexes(spark)", DeprecationWarning, stacklevel=2
        )
        return list_indexes(spark)


_import_module("es_skipping.indexes").__class__ = _IndexesPackage
_import_module("es_skipping.moved")


if not TYPE_CHECKING:  # a type checker reads the imports above and finds misspelt names

    def __getattr__(name):
        if name in _ROOMS:
            _need_spark(name)
            return _import_module(f"{__name__}.{name}")
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_did_you_mean(name)}")
        if home.startswith(_OF_SPARK) and not home.startswith(_BESIDE_SPARK):
            _need_spark(name)
        value = getattr(_import_module(home), name)
        globals()[name] = value
        return value


_OF_SPARK = tuple(f"es_skipping.{room}" for room in ("build", "layout", "reports", "session", "spark"))
_BESIDE_SPARK = "es_skipping.build.arrow"


def _need_spark(name: str) -> None:
    """Say how to install PySpark, if it is missing, before a call fails somewhere below."""
    from importlib.util import find_spec

    try:
        missing = find_spec("pyspark") is None
    except ImportError:
        missing = True
    if missing:
        raise ImportError(
            f"es_skipping.{name} needs PySpark, which is not installed: pip install 'es-skipping[spark]'",
            name="pyspark",
        )


def _did_you_mean(name: str) -> str:
    """A hint that names the nearest public name; empty if none is near."""
    import difflib

    names = {one.lower(): one for one in (*__all__, *_ROOMS)}
    nearest = difflib.get_close_matches(name.lower().replace("_", ""), names, 1, 0.75)
    return f"; did you mean {names[nearest[0]]!r}?" if nearest else ""


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__, *_ROOMS})
