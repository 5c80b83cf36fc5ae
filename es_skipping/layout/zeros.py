"""Parquet options for columns that hold -0.0.

Parquet's dictionaries and Bloom filters distinguish -0.0 from 0.0, Spark's comparisons do not. If all zeros of a row
group are -0.0, Spark's reader drops its rows for ``x = 0``. A layout can create such row groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from es_skipping.predicates.show import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["options_for_zeros"]

_TELLING_APART: Final = ("parquet.enable.dictionary", "parquet.bloom.filter.enabled")


def options_for_zeros(df: DataFrame) -> dict[str, str]:
    """Options of Spark's Parquet writer for a DataFrame, which is read once if it has a FLOAT or DOUBLE.

    Columns without -0.0 keep their dictionaries. Parquet options cannot name a path with a dot in a name: if such a
    column holds -0.0, no column gets a dictionary.
    """
    from es_skipping.spark.classic import functions as F

    paths = list(_floats(df.schema))
    if not paths:
        return {}
    columns = [F.col(".".join(map(quoted_name, path))) for path in paths]
    negative = [F.max(column.cast("string") == "-0.0") for column in columns]
    (found,) = df.select(F.array(*negative)).collect()[0]
    holding = [path for path, holds in zip(paths, found, strict=True) if holds]
    if any("." in name for path in holding for name in path):
        return dict.fromkeys(_TELLING_APART, "false")
    return {f"{option}#{'.'.join(path)}": "false" for option in _TELLING_APART for path in holding}


def _floats(schema: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths to floating-point columns that Spark may filter in a file, so not in arrays and maps."""
    from pyspark.sql.types import DoubleType, FloatType, StructType

    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from _floats(field.dataType, (*above, field.name))
        elif isinstance(field.dataType, FloatType | DoubleType):
            yield (*above, field.name)
