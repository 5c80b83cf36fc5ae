"""What needs a Spark of its own: Hive's catalog, another file system, the event log and the UI, no callback port.

One process does all of it, because each would start a JVM; the tests look at what it found.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.processes import run_python

SECRET = "hunter2-of-the-store"

SCRIPT = """
import json, socket, sys, urllib.request
from pathlib import Path

import es_skipping as esk
from es_skipping.spark.services import store_of
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, same_rows

folder = Path(sys.argv[1])
lake = "viewfs://lake"
builder = SparkSession.builder.master("local[2]").enableHiveSupport()
for key, value in {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
    "spark.hadoop.hive.exec.scratchdir": str(folder / "scratch"),
    "spark.hadoop.fs.viewfs.mounttable.lake.link./data": (folder / "data").as_uri(),
    "spark.hadoop.fs.viewfs.mounttable.lake.link./store": (folder / "store").as_uri(),
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": (folder / "events").as_uri(),
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.es_skipping.store.url": f"{lake}/store",
    "spark.es_skipping.store.timeout": "30s",
    "spark.es_skipping.query.budget": "60s",
    "spark.es_skipping.store.user": "reader",
    "spark.es_skipping.store.password": sys.argv[2],
}.items():
    builder = builder.config(key, value)
for name in ("data", "store", "events"):
    (folder / name).mkdir()
spark = esk.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
found = {}


def read(query):
    df = same_rows(spark, query)
    return [sum(num_files(df)), len(df.collect())]


# Hive's tables
spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
spark.sql("CREATE DATABASE lake")
spark.sql("CREATE TABLE lake.words (id BIGINT, word STRING) PARTITIONED BY (day STRING) STORED AS PARQUET")
for day in ("a", "b"):
    rows = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, concat('w', id) FROM range(40)"
    spark.sql(f"INSERT INTO lake.words PARTITION (day = '{day}') {rows}")
elsewhere = (folder / "elsewhere").as_uri()
spark.range(100, 140, 1, 4).selectExpr("id", "concat('w', id) AS word").write.parquet(elsewhere)
spark.sql(f"ALTER TABLE lake.words ADD PARTITION (day = 'c') LOCATION '{elsewhere}'")
age(folder)
spark.catalog.refreshTable("lake.words")
result = esk.Dataset(spark, table="lake.words").create_indexes(esk.MinMax("id"), esk.Suffix("word", length=2))
found["hive objects"] = [result.added, list(result.failed)]
found["hive range"] = read("SELECT * FROM lake.words WHERE id BETWEEN 3 AND 5")
found["hive partition and range"] = read("SELECT * FROM lake.words WHERE id BETWEEN 3 AND 5 AND day = 'b'")
found["hive elsewhere"] = read("SELECT * FROM lake.words WHERE id = 117")
found["hive suffix"] = read("SELECT * FROM lake.words WHERE word LIKE '%39' AND day <> 'a'")
spark.sql("INSERT INTO lake.words PARTITION (day = 'b') VALUES (4, 'new')")
found["hive after an insert"] = read("SELECT * FROM lake.words WHERE id BETWEEN 3 AND 5")

# partitions with a serde of their own
spark.sql("CREATE TABLE lake.mixed (id BIGINT, word STRING) PARTITIONED BY (day STRING) STORED AS PARQUET")
for day in ("a", "b"):
    rows = "SELECT /*+ REPARTITION_BY_RANGE(4, id) */ id, concat('w', id) FROM range(40)"
    spark.sql(f"INSERT INTO lake.mixed PARTITION (day = '{day}') {rows}")
spark.sql("ALTER TABLE lake.mixed PARTITION (day = 'b') SET SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe'")
age(folder)
spark.catalog.refreshTable("lake.mixed")
esk.Dataset(spark, table="lake.mixed").create_indexes(esk.MinMax("id"))
found["serde"] = read("SELECT * FROM lake.mixed WHERE id BETWEEN 3 AND 5")
spark.sql("CREATE TABLE lake.lines (id BIGINT, word STRING) PARTITIONED BY (day STRING) "
          "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE")
for day, separator in (("a", ","), ("b", "|")):
    place = folder / "lines" / f"day={day}"
    place.mkdir(parents=True)
    for start in (0, 10):
        (place / f"{start}.csv").write_text("".join(f"{i}{separator}w{i}\\n" for i in range(start, start + 10)))
    spark.sql(f"ALTER TABLE lake.lines ADD PARTITION (day = '{day}') LOCATION 'file://{place}'")
spark.sql("ALTER TABLE lake.lines PARTITION (day = 'b') SET SERDEPROPERTIES ('field.delim' = '|')")
age(folder)
lines = esk.Dataset(spark, (folder / "lines").as_uri(), format="csv", schema="id BIGINT, word STRING")
lines.create_indexes(esk.MinMax("id"))
found["serde of text"] = read("SELECT * FROM lake.lines WHERE id = 13")
try:
    esk.Dataset(spark, table="lake.lines").create_indexes(esk.MinMax("id"))
    found["serde of text indexed"] = ["no error"]
except esk.EsSkippingError as error:
    found["serde of text indexed"] = [str(error)]

# functions of Hive, which are classes by names of a session
spark.sql("CREATE TEMPORARY FUNCTION small AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower'")
try:
    esk.Dataset(spark, table="lake.words").create_indexes(esk.ValueList("small(word)"))
except esk.EsSkippingError as error:
    found["hive function"] = [str(error)]
found["hive function asked"] = read("SELECT * FROM lake.words WHERE small(word) = 'w3' AND id < 10")

# a file system other than the local one, for data and metadata
path = f"{lake}/data/numbers"
spark.range(0, 100, 1, 5).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS text").write.parquet(path)
age(folder / "data")
numbers = esk.Dataset(spark, path)
found["viewfs footers"] = [numbers.create_indexes(esk.MinMax("id")).added]
found["viewfs added"] = [numbers.create_indexes(esk.ValueList("text")).updated]
found["viewfs range"] = read(lambda s: s.read.parquet(path).where("id < 20"))
found["viewfs list"] = read(lambda s: s.read.parquet(path).where("text IN ('3', '99')"))
more = spark.range(100, 120, 1, 1).selectExpr("id", "id % 7 AS k", "CAST(id AS STRING) AS text")
more.write.mode("append").parquet(path)
found["viewfs after an append"] = read(lambda s: s.read.parquet(path).where("id < 20"))
age(folder / "data")
refreshed = esk.Dataset(spark, path).refresh()
found["viewfs refreshed"] = [refreshed.added + refreshed.updated]
found["viewfs after a refresh"] = read(lambda s: s.read.parquet(path).where("id < 20"))
found["viewfs refreshed"].append(refreshed.unchanged)

# protected metadata: values that no query names
import os, secrets, time
os.environ["CITY_KEY"], os.environ["PAY_KEY"], os.environ["MAC_KEY"] = KEYS = [secrets.token_hex(32) for _ in range(3)]
for name in ("verify", "verify.key"):
    spark.conf.set("spark.es_skipping." + name, {"verify": "mac", "verify.key": "env:MAC_KEY"}[name])
spark.conf.set("spark.es_skipping.queryLog.enabled", "true")
path = f"{lake}/data/people"
people = "id", "concat('plantedtown', id DIV 25) AS city", "CAST(9007000 + id AS BIGINT) AS pay"
spark.range(0, 100, 1, 4).selectExpr(*people).write.parquet(path)
age(folder / "data")
dataset = esk.Dataset(spark, path)
dataset.create_indexes(
    esk.ValueList("city", protect="hashed", key="env:CITY_KEY"),
    esk.MinMax("pay", protect="sealed", key="env:PAY_KEY"),
    esk.MinMax("id"),
)
found["protected"] = read(lambda s: s.read.parquet(path).where("city = 'plantedtown2'"))
found["protected range"] = read(lambda s: s.read.parquet(path).where("pay < 9007010"))
found["protected in one file only"] = dataset.refresh().unchanged
with esk.observe(spark) as report:
    spark.read.parquet(path).where("pay < 9007010").count()
told = [str(report), repr(report), repr(dataset), dataset._repr_html_(), str(dataset.describe().collect())]
told += [str(spark.sql(f"EXPLAIN EXTENDED SELECT * FROM parquet.`{path}` WHERE id < 9").collect())]
told += [str(esk.explain(spark.read.parquet(path).where("id < 9"))), str(esk.queries(spark).collect())]
time.sleep(3)  # the query log is written in the background
# These are bounds and values of the metadata; the queries named plantedtown2 and 9007010.
UNASKED = ["plantedtown0", "plantedtown1", "plantedtown3", "9007024", "9007025", "9007099", *KEYS]
names_of_queries = ["plantedtown2", "9007010"]


def tells(texts, words):
    return sorted({word for text in texts for word in words if word in text})


found["store tells"] = tells(
    [one.read_bytes().decode("latin-1") for one in (folder / "store").rglob("*") if one.is_file()],
    UNASKED + names_of_queries,
)
found["sealed files"] = len([one for one in (folder / "store").rglob("*") if ".sealed" in str(one) and one.is_file()])
found["logged queries"] = len(list(store_of(spark).logged_queries()))
found["texts tell"] = tells(told, UNASKED)
path = f"{lake}/data/numbers"

# what others can see
ui, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
addresses = [f"api/v1/applications/{application}/{part}" for part in ("environment", "sql")] + ["environment/", "SQL/"]
pages = [urllib.request.urlopen(f"{ui}/{address}").read().decode() for address in addresses]
found["pages tell"] = ["es_skipping.store.user" in pages[0], any(sys.argv[2] in page for page in pages)]
found["pages tell of metadata"] = tells(pages, UNASKED)
found["SET tells"] = [sys.argv[2] in repr(spark.sql("SET").collect())]

# nobody listens to the shim any more
server = SparkContext._gateway._callback_server
server.server_socket.shutdown(socket.SHUT_RDWR)
for connection in list(server.connections):
    connection.socket.shutdown(socket.SHUT_RDWR)
df = spark.read.parquet(path).where("id < 20")
with esk.observe(spark) as report:
    rows = len(df.collect())
found["callback gone"] = [sum(num_files(df)), rows]
(scan,) = report.scans
found["callback gone, report"] = [scan.failed, scan.objects_skipped, bool(scan.reason)]
spark.conf.set("spark.es_skipping.strict", "true")
try:
    spark.read.parquet(path).where("id < 20").collect()
    found["callback gone, strict"] = ["no error"]
except Exception as error:
    found["callback gone, strict"] = ["skipping" in str(error)]
spark.stop()
files = [file for file in (folder / "events").rglob("*") if file.is_file() and not file.name.startswith(".")]
logs = "".join(file.read_text() for file in files)
found["event log tells of metadata"] = [tells([logs], UNASKED), tells([logs], names_of_queries)]
found["event log tells"] = ["spark.es_skipping.store.user" in logs, sys.argv[2] in logs]
print("found", json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("own")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment.pop("PYSPARK_PYTHON", None)
    done = run_python(SCRIPT, folder, str(folder), SECRET, environment=environment)
    assert SECRET not in done.stderr
    assert "plantedtown" not in done.stderr and "9007024" not in done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    result: dict[str, list[Any]] = json.loads(line.removeprefix("found "))
    return result


def test_hive_tables_skip_in_every_partition(found: dict[str, list[Any]]) -> None:
    assert found["hive objects"] == [12, []]
    assert found["hive range"] == [2, 6], "one of four in each of two partitions, and none of the third"
    assert found["hive partition and range"] == [1, 3]
    assert found["hive elsewhere"] == [1, 1], "a partition at a location of its own"
    assert found["hive suffix"] == [2, 2]
    assert found["hive after an insert"] == [3, 7], "a file that nobody indexed is read"


def test_partitions_with_a_serde_of_their_own(found: dict[str, list[Any]]) -> None:
    assert found["serde"] == [2, 6], "Spark reads all partitions of the table as Parquet, and so does the build"
    assert found["serde of text"] == [0, 2], "both partitions, by Hive's reader, which is left alone"
    assert "does not read files as Spark's own formats do" in found["serde of text indexed"][0]


def test_functions_of_hive_are_not_indexed(found: dict[str, list[Any]]) -> None:
    assert "a Hive function" in found["hive function"][0]
    assert found["hive function asked"] == [3, 2], "by the range of id alone, and the file that nobody indexed"


def test_data_and_metadata_on_another_file_system(found: dict[str, list[Any]]) -> None:
    assert found["viewfs footers"] == [5]
    assert found["viewfs added"] == [5]
    assert found["viewfs range"] == [1, 20]
    assert found["viewfs list"] == [2, 2]
    assert found["viewfs after an append"] == [2, 20]
    assert found["viewfs refreshed"] == [6, 0], "all were made to look older"
    assert found["viewfs after a refresh"] == [1, 20]


def test_no_secret_in_the_event_log_the_ui_or_set(found: dict[str, list[Any]]) -> None:
    assert found["pages tell"] == [True, False]
    assert found["event log tells"] == [True, False]
    assert found["SET tells"] == [False]


def test_protected_values_and_keys_are_nowhere_in_what_a_run_wrote(found: dict[str, list[Any]]) -> None:
    assert found["protected"] == [1, 25]
    assert found["protected range"] == [1, 10]
    assert found["protected in one file only"] == 4
    assert found["sealed files"] >= 2 and found["logged queries"] >= 3
    assert found["store tells"] == []
    assert found["texts tell"] == []
    assert found["pages tell of metadata"] == []
    # Spark itself logs what queries ask. That they are found shows that the log is searched well.
    assert found["event log tells of metadata"] == [[], ["9007010", "plantedtown2"]]


def test_a_callback_port_that_is_gone(found: dict[str, list[Any]]) -> None:
    assert found["callback gone"] == [6, 20]
    assert found["callback gone, report"] == [True, 0, True]
    assert found["callback gone, strict"] == [True]
