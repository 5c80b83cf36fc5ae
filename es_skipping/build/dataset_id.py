"""The id of a dataset that Spark reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from es_skipping.build.listing import qualified
from es_skipping.build.object_ids import dataset_id
from es_skipping.build.source import Reading
from es_skipping.errors import DatasetError
from es_skipping.predicates.show import quoted_name
from es_skipping.spark.failures import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["id_of_reading"]

_SESSION_CATALOG: Final = "spark_catalog"


def id_of_reading(spark: SparkSession, reading: Reading) -> str:
    """The id of what a reading reads: by its table's full name, or by its paths."""
    if reading.table is not None:
        place = _full_name(spark, reading.table)
        name = place.rpartition(".")[2]
    else:
        try:
            places = sorted(qualified(spark, path) for path in reading.paths)
        except Exception as error:
            raise DatasetError(f"Spark cannot read the path {reading.name}: {first_line(error)}") from error
        place = "\n".join(places)
        name = places[0].rpartition("/")[2]
    return dataset_id(name, place)


def _full_name(spark: SparkSession, table: str) -> str:
    from pyspark.errors import PySparkException

    state = spark._jsparkSession.sessionState()
    catalogs = state.catalogManager()
    try:
        given = state.sqlParser().parseMultipartIdentifier(table)
        parts = [str(given.apply(i)) for i in range(given.size())]
        # Spark's own question would load a catalog by the settings of the thread's active session, if it has one.
        known = parts[0] == _SESSION_CATALOG or state.conf().contains(f"spark.sql.catalog.{parts[0]}")
        if len(parts) > 1 and known:
            catalog, parts = parts[0], parts[1:]
        else:
            catalog = str(catalogs.currentCatalog().name())
            if catalog != _SESSION_CATALOG and len(parts) == 1:
                parts = [*map(str, catalogs.currentNamespace()), *parts]
        if catalog != _SESSION_CATALOG:
            return ".".join([catalog, *parts])
        identifier = state.sqlParser().parseTableIdentifier(".".join(map(quoted_name, parts)))
        return str(state.catalog().qualifyIdentifier(identifier).unquotedString())
    except PySparkException as error:
        raise DatasetError(f"{table!r} is not a table name: {first_line(error)}") from None
