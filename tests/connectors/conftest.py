"""Sessions with a table format's own jar, fetched by Spark itself, each on the newest Spark the format supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark import __version__
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.jvm import INTERPRETED, PRELOADED, for_the_jvm_alone

IVY = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""
"""Maven Central alone: a local Maven repository may hold descriptions without their jars, on which Ivy gives up."""

DELTA = {"4.0": "io.delta:delta-spark_2.13:4.0.1", "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"}
"""The oldest and the newest that Delta has for Spark 4."""

ICEBERG = {
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""The oldest that is served, and the newest."""

SEDONA = ("org.apache.sedona:sedona-spark-shaded-4.0_2.13:1.8.0", "org.datasyslab:geotools-wrapper:1.8.0-33.1")
"""For the oldest Spark."""


def _session(warehouse: Path, package: str, conf: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.jars.packages", package)
    ivy = warehouse / "ivysettings.xml"
    ivy.write_text(IVY, encoding="utf-8")
    conf = {
        "spark.jars.ivySettings": str(ivy),
        "spark.driver.memory": "2g",  # what a module leaves behind would fill one, again and again
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM runs as many tasks, 10,000 by default
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        "spark.es_skipping.strict": "true",
        **PRELOADED,
        **conf,
    }
    for key, value in conf.items():
        builder = builder.config(key, value)
    return for_the_jvm_alone(esk.configure(builder).getOrCreate())


def delta_session(warehouse: Path) -> SparkSession:
    """A session with Delta's catalog."""
    return _session(
        warehouse,
        DELTA[__version__.rpartition(".")[0]],
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            **INTERPRETED,
            "spark.databricks.delta.snapshotPartitions": "1",  # of 50 tasks per look at a table nearly all are empty
        },
    )


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    spark = delta_session(tmp_path_factory.mktemp("delta"))
    esk.enable(spark)
    yield spark
    spark.stop()


def iceberg_session(warehouse: Path, catalog: Mapping[str, str]) -> SparkSession:
    """A session with one of Iceberg's catalogs, ``lake``."""
    return _session(
        warehouse,
        ICEBERG[__version__.rpartition(".")[0]],
        {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.warehouse": (warehouse / "lake").as_uri(),
            **{f"spark.sql.catalog.lake.{key}": value for key, value in catalog.items()},
        },
    )


@pytest.fixture(scope="module")
def iceberg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    spark = iceberg_session(tmp_path_factory.mktemp("iceberg"), {"type": "hadoop"})
    esk.enable(spark)
    yield spark
    spark.stop()


DELTA_AND_ICEBERG = (
    "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
)


def _both_catalogs(warehouse: Path) -> dict[str, str]:
    """Delta's catalog as the session's own, and Iceberg's, ``lake``."""
    return {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": (warehouse / "lake").as_uri(),
    }


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """With Delta's catalog and with Iceberg's, ``lake``. Only the oldest Spark has both."""
    warehouse = tmp_path_factory.mktemp("lakes")
    spark = _session(
        warehouse,
        ",".join((DELTA["4.0"], ICEBERG["4.0"])),
        {
            "spark.sql.extensions": DELTA_AND_ICEBERG,
            **_both_catalogs(warehouse),
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.session.timeZone": "UTC",
            **INTERPRETED,
        },
    )
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def sedona(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """With Delta and Iceberg too, for polygons over their tables."""
    warehouse = tmp_path_factory.mktemp("sedona")
    spark = _session(
        warehouse,
        ",".join((*SEDONA, DELTA["4.0"], ICEBERG["4.0"])),
        {
            "spark.sql.extensions": f"{DELTA_AND_ICEBERG},org.apache.sedona.sql.SedonaSqlExtensions",
            **_both_catalogs(warehouse),
            "spark.es_skipping.store.timeout": "30s",  # a busy machine must not look like a fault
            "spark.es_skipping.query.budget": "60s",
        },
    )
    esk.enable(spark)
    yield spark
    spark.stop()


@pytest.fixture(scope="module")
def avro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    spark = _session(tmp_path_factory.mktemp("avro"), f"org.apache.spark:spark-avro_2.13:{__version__}", {})
    esk.enable(spark)
    yield spark
    spark.stop()
