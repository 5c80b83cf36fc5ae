"""How the tests start a JVM: options for lives of seconds, and an archive of the classes that each of them loads.

A suite starts more than a hundred JVMs, and half of what one does until its first answer is to load and check Spark's
classes. An archive of them, made once a run, saves that.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "INTERPRETED",
    "INTERPRETED_OPTIONS",
    "OPTIONS",
    "PRELOADED",
    "for_the_jvm_alone",
    "make_archive",
    "with_archive",
    "write_fewer_defaults",
]

_ROOT: Final = Path(__file__).resolve().parent.parent
_FEWER_DEFAULTS: Final = _ROOT / "build" / "tests" / "fewer-defaults.jar"

OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC -XX:MetaspaceSize=512m -XX:NewSize=250m "
    f"-Dspark.broadcast.compress=false -Dspark.shuffle.compress=false -Xbootclasspath/a:{_FEWER_DEFAULTS}"
)
"""Half of what the cores do in a short life is the second compiler's and the collector's threads, whose work pays after
minutes. The collector also looks at the whole heap each time that the classes outgrow a first guess of 21 MiB, and
copies what lives whenever a hundred MiB are new: Spark's classes take more, and a test's garbage dies young. Nothing
travels, so nothing is worth compressing. What stands on the path of the boot loader is found first: see
`write_fewer_defaults`."""

INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings of a session whose queries are not compiled: to compile one takes far longer than to read a few rows."""

INTERPRETED_OPTIONS: Final = " ".join(f"-D{key}={value}" for key, value in INTERPRETED.items())
"""The same for all sessions of a JVM."""

PRELOADED: Final = {"spark.python.daemon.module": "tests.python_daemon"}
"""Settings of a session whose Python workers begin with their modules imported, for JVMs that find this checkout."""

_SECONDS: Final = 180


def write_fewer_defaults() -> None:
    """Write the archive that `OPTIONS` name: Hadoop's defaults of YARN and MapReduce, of which the tests need none.

    A query copies Hadoop's settings, and so does each task that writes. Two thirds of them are these defaults, and to
    copy those was a twelfth of what the tests' JVMs did.
    """
    if _FEWER_DEFAULTS.is_file():
        return
    _FEWER_DEFAULTS.parent.mkdir(parents=True, exist_ok=True)
    written = _FEWER_DEFAULTS.with_name(f"{_FEWER_DEFAULTS.name}.{os.getpid()}")
    with zipfile.ZipFile(written, "w") as archive:
        for name in ("yarn-default.xml", "mapred-default.xml"):
            archive.writestr(name, "<configuration/>")
    written.replace(_FEWER_DEFAULTS)  # legs start at the same time


def for_the_jvm_alone(spark: SparkSession) -> SparkSession:
    """Take the jars of ``spark.jars.packages`` from the path of Python's workers.

    PySpark puts them there, and each Python task reads the directories of all of them anew: a third of a second for
    Sedona's and Iceberg's.
    """
    includes = spark.sparkContext._python_includes
    assert includes is not None
    includes[:] = [name for name in includes if not name.endswith(".jar")]
    return spark


def with_archive(archive: Path) -> str:
    """The options of a JVM that takes its classes from an archive, or from the jars where the archive does not fit."""
    return f"{OPTIONS} -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def make_archive(python: str, archive: Path) -> str:
    """Write the archive for the Spark of a Python.

    Returns
    -------
    str
        The options with the archive; those without where it could not be written, as with a JVM before 13.
    """
    archive.unlink(missing_ok=True)
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{OPTIONS} -XX:ArchiveClassesAtExit={archive}"}
    with contextlib.suppress(subprocess.TimeoutExpired):  # a machine that is too busy for it does without
        subprocess.run(
            [python, "-m", "tests.jvm"],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    return with_archive(archive) if archive.is_file() else OPTIONS


def _use_spark() -> None:
    """Do in short what the tests do: files of several formats, joins, aggregates, plans."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(100).selectExpr("id", "id % 7 AS k", "CAST(id AS string) AS name", "current_date() AS day")
        for format in ("parquet", "orc", "json"):
            rows.write.partitionBy("k").format(format).save(f"{folder}/{format}")
            spark.read.format(format).load(f"{folder}/{format}").createOrReplaceTempView(format)
        joined = "SELECT a.k, count(*) FROM parquet a JOIN orc b ON a.id = b.id WHERE b.name LIKE '1%' GROUP BY a.k"
        spark.sql(f"{joined} ORDER BY 1 LIMIT 5").collect()
        spark.sql("EXPLAIN SELECT * FROM json WHERE day > '2020-01-01' AND k IN (1, 2)").collect()
        spark.createDataFrame([(1, "a")], "x int, y string").toPandas()
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)  # it writes the archive as it ends


if __name__ == "__main__":
    _use_spark()
