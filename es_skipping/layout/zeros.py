"""Columns that hold -0.0, as Parquet must write them.

Parquet's dictionaries and Bloom filters tell -0.0 from 0.0, Spark's comparisons do not. So of a row group whose zeros
all are -0.0 Spark's reader drops the rows for ``x = 0``. Rows that lay beside 0.0 may come to lie so in a layout.
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
    """Options of Spark's Parquet writer for the rows of a DataFrame, which is read once if it has a FLOAT or DOUBLE.

    Columns without -0.0 keep their dictionaries. A path in which a name has a dot cannot be told to Parquet: where such
    a column holds -0.0, none of the columns has a dictionary.
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
    """The paths to numbers that Spark may look for in a file, which are not those in arrays and maps."""
    from pyspark.sql.types import DoubleType, FloatType, StructType

    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from _floats(field.dataType, (*above, field.name))
        elif isinstance(field.dataType, FloatType | DoubleType):
            yield (*above, field.name)
