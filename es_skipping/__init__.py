"""Data skipping for Spark: queries open only the files that can hold a matching row.

>>> import es_skipping as esk
>>> spark = esk.configure(SparkSession.builder).getOrCreate()           # doctest: +SKIP
>>> esk.enable(spark)                                                    # doctest: +SKIP
>>> esk.Dataset(spark, "/lake/events").create_indexes(esk.MinMax("ts"))  # doctest: +SKIP

The names are loaded when they are first used, so that `es_skipping.predicates` and `es_skipping.clauses` need neither
Spark nor a store, and Spark's Python workers load no more than the collectors.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from es_skipping.errors import (
        ColumnError,
        DatasetError,
        EsSkippingError,
        IndexDefinitionError,
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
    from es_skipping.reports import explain, indicators, last_query, observe, queries, why_not
    from es_skipping.spark.dataset import Dataset, RefreshResult, indexes
    from es_skipping.spark.functions import declare_function
    from es_skipping.spark.session import configure, disable, enable, is_enabled

__version__ = "0.1.0"

_HOMES = {
    "es_skipping.errors": (
        "ColumnError",
        "DatasetError",
        "EsSkippingError",
        "IndexDefinitionError",
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
    "es_skipping.reports": ("explain", "indicators", "last_query", "observe", "queries", "why_not"),
    "es_skipping.spark.dataset": ("Dataset", "RefreshResult"),
    "es_skipping.spark.functions": ("declare_function",),
    "es_skipping.spark.session": ("configure", "disable", "enable", "is_enabled"),
}

__all__ = [
    "BloomFilter",
    "ColumnError",
    "Dataset",
    "DatasetError",
    "EsSkippingError",
    "Formatted",
    "GapList",
    "GeoBox",
    "GeometryBox",
    "Hybrid",
    "IndexDefinitionError",
    "MetricDistance",
    "MinMax",
    "Prefix",
    "RefreshResult",
    "SettingError",
    "StoreConflict",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailable",
    "Suffix",
    "ValueList",
    "configure",
    "declare_function",
    "disable",
    "enable",
    "explain",
    "indexes",
    "indicators",
    "is_enabled",
    "last_query",
    "observe",
    "queries",
    "why_not",
]

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _IndexesPackage(ModuleType):
    """`es_skipping.indexes` is a package and, as a public name, a function: importing any index type puts the package
    there, whatever stood in its place. So the package itself can be called."""

    def __call__(self, spark: SparkSession) -> DataFrame:
        from es_skipping.spark.dataset import indexes

        return indexes(spark)


import_module("es_skipping.indexes").__class__ = _IndexesPackage


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
