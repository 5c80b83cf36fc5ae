"""Bad input is told at once and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.build import columns
from es_skipping.build.columns import resolve
from es_skipping.build.source import Reading, Source
from es_skipping.errors import (
    ColumnError,
    DatasetError,
    EsSkippingError,
    IndexDefinitionError,
    SettingError,
    StoreError,
)
from tests.spark.building import ROOT_SETTING, spark, write_each

__all__ = ["spark"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "x": [1, 2],
            "s": ["a", "b"],
            "list": pa.array([[1], [2]]),
            "struct": pa.array([{"a": 1}, {"a": 2}]),
            "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
        }
    )
    return write_each(tmp_path / "data" / "p=1", {"a": table}).parent


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda: esk.MinMax("nothing"), "'nothing' does not exist"),
        (lambda: esk.MinMax("struct.b"), "'struct.b' does not exist"),
        (lambda: esk.MinMax("x +"), "'x \\+' is neither a column nor SQL"),
        (lambda: esk.MinMax("to_dat(x)"), "'to_dat\\(x\\)' is neither a column nor SQL .* `to_dat`"),
        (lambda: esk.MinMax("p"), "partition column"),
        (lambda: esk.MinMax("p + x"), "partition column 'p'"),
        (lambda: esk.MinMax("list"), "list.*array<bigint>"),
        (lambda: esk.MinMax("struct"), "struct.*struct<a:bigint>"),
        (lambda: esk.ValueList("map"), "map.*map<string,int>"),
        (lambda: esk.MinMax("s COLLATE UTF8_LCASE"), "s COLLATE UTF8_LCASE"),
        (lambda: esk.MinMax("rand()"), "not deterministic"),
        (lambda: esk.MinMax("current_date()"), "depends on the time or the user"),
        (lambda: esk.MinMax("datediff(current_date(), date'2020-01-01') + x"), "depends on the time or the user"),
        (lambda: esk.MinMax("concat(current_user(), s)"), "depends on the time or the user"),
        (lambda: esk.MinMax("1 + 1"), "'1 \\+ 1' cannot be indexed"),
        (lambda: esk.MinMax("_metadata.file_size"), "_metadata.file_size"),
        (lambda: esk.MinMax("max(x)"), "max\\(x\\)"),
        (lambda: esk.MinMax("explode(list)"), "explode"),
        (lambda: esk.MinMax(F.udf(lambda x: x, "int")("x")), "user function"),
        (lambda: esk.Prefix("x", length=3), "type bigint.*needs a string"),
    ],
    ids=lambda value: None if callable(value) else value,
)
def test_columns_that_cannot_be_indexed(spark: SparkSession, data: Path, index: Any, message: str) -> None:
    dataset = esk.Dataset(spark, str(data))
    with pytest.raises(ColumnError, match=message):
        dataset.create_indexes(esk.MinMax("x"), index())
    assert not dataset.is_indexed()


def test_pyspark_logs_its_errors_as_before_but_not_ours(
    spark: SparkSession, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A logger of PySpark's that somebody else makes first is no PySparkLogger, and each of its errors then fails."""
    dataset = esk.Dataset(spark, str(data))
    for missing in ("nothing", F.col("nothing"), "to_dat(x)"):
        with pytest.raises(ColumnError):
            dataset.create_indexes(esk.MinMax(missing))
    assert "UNRESOLVED" not in capfd.readouterr().err
    for mistake in (lambda: spark.range(1).select(F.col("nothing")), lambda: spark.sql("SELECT nothing")):
        with pytest.raises(AnalysisException, match="nothing"):
            mistake()


def test_names_that_differ_by_case_alone(spark: SparkSession, tmp_path: Path) -> None:
    write_each(tmp_path / "data", {"a": pa.table([[1], [2]], names=["a", "A"])})
    spark.conf.set("spark.sql.caseSensitive", "true")
    dataset = esk.Dataset(spark, f"{tmp_path}/data")
    dataset.create_indexes(esk.MinMax("a"), esk.MinMax("A"))
    assert {row.id for row in dataset.describe().collect()} == {"minmax(a)", "minmax(A)"}


@pytest.mark.parametrize("length", [0, -1, 1.5, True, "3"])
def test_lengths(length: Any) -> None:
    with pytest.raises(IndexDefinitionError, match="length"):
        esk.Prefix("s", length=length)


def test_what_is_no_index(spark: SparkSession, data: Path) -> None:
    dataset = esk.Dataset(spark, str(data))
    with pytest.raises(IndexDefinitionError, match=r"'MinMax\(x\)' is not an index; .* MinMax\('ts'\), without quotes"):
        dataset.create_indexes("MinMax(x)")  # type: ignore[arg-type]
    with pytest.raises(IndexDefinitionError, match=r"MinMax is an index type; give it a column: MinMax\('ts'\)"):
        dataset.create_indexes(esk.MinMax)  # type: ignore[arg-type]
    with pytest.raises(IndexDefinitionError, match="one by one"):
        dataset.create_indexes([esk.MinMax("x")])  # type: ignore[arg-type]
    with pytest.raises(IndexDefinitionError, match="'x' is not an index"):
        dataset.drop_indexes("x")  # type: ignore[arg-type]
    with pytest.raises(IndexDefinitionError, match="at least one"):
        dataset.create_indexes()
    with pytest.raises(IndexDefinitionError, match="pass either indexes or all=True"):
        dataset.drop_indexes()
    with pytest.raises(IndexDefinitionError, match="pass either indexes or all=True"):
        dataset.drop_indexes(esk.MinMax("x"), all=True)


def test_places(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nowhere does not exist"):
        esk.Dataset(spark, f"{tmp_path}/nowhere").create_indexes(esk.MinMax("x"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="holds no parquet files"):
        esk.Dataset(spark, f"{tmp_path}/empty").create_indexes(esk.MinMax("x"))
    with pytest.raises(DatasetError, match="table no_such_table does not exist"):
        esk.Dataset(spark, table="no_such_table").create_indexes(esk.MinMax("x"))
    with pytest.raises(DatasetError, match="either a path or a table"):
        esk.Dataset(spark)
    with pytest.raises(DatasetError, match="either a path or a table"):
        esk.Dataset(spark, " ")
    with pytest.raises(DatasetError, match="either a path or a table"):
        esk.Dataset(spark, "/x", table="t")
    with pytest.raises(DatasetError, match="the catalog defines"):
        esk.Dataset(spark, table="t", format="csv")
    with pytest.raises(DatasetError, match=r"relative does not exist: Spark looked at file:/.*/relative$"):
        esk.Dataset(spark, "relative").create_indexes(esk.MinMax("x"))


TABLES = {
    "an Iceberg table": "metadata/v1.metadata.json",
    "a Hudi table": ".hoodie/x",
}
WHY = {
    "an Iceberg table": "The table's own log decides which files and rows are live",
    "a Hudi table": "A file slice of it may have log files that add or change rows, and Hudi publishes no bundle for "
    "Spark 4",
}


@pytest.mark.parametrize("kind", TABLES)
def test_directories_of_table_formats_are_refused_by_name(spark: SparkSession, data: Path, kind: str) -> None:
    """Such as plain Parquet they would be indexed without a word, rows that were deleted included."""
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    mark = data / TABLES[kind]
    mark.parent.mkdir()
    mark.write_text("{}", encoding="utf-8")
    message = re.escape(f"is {kind}: file:{data} holds {TABLES[kind].partition('/')[0]}. {WHY[kind]}")
    # the directory of an Iceberg table means the table
    whole = message if kind == "a Hudi table" else "as iceberg: this session does not have the jar of iceberg"
    with pytest.raises(DatasetError, match=whole):
        dataset.refresh()
    for part in ("p=1", "p=*", "p=1/a.parquet"):  # its directories and files too
        with pytest.raises(DatasetError, match=message):
            esk.Dataset(spark, f"{data}/{part}").create_indexes(esk.MinMax("x"))
    spark.sql(f"CREATE TABLE held (x BIGINT) USING parquet LOCATION '{data}/p=1'")
    try:
        with pytest.raises(DatasetError, match=f"table held {message}"):
            esk.Dataset(spark, table="held").create_indexes(esk.MinMax("x"))
    finally:
        spark.sql("DROP TABLE held")
    mark.unlink()
    mark.parent.rmdir()
    assert dataset.refresh().failed == ()


def test_the_format_hudi_is_refused_with_the_reason(spark: SparkSession, data: Path) -> None:
    with pytest.raises(DatasetError, match=r"as hudi: a file slice .* Hudi publishes no bundle for Spark 4"):
        esk.Dataset(spark, str(data), format="hudi").create_indexes(esk.MinMax("x"))


def test_a_directory_named_metadata_alone_is_no_iceberg_table(spark: SparkSession, data: Path) -> None:
    (data / "metadata").mkdir()
    assert esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x")).added == 1


def test_what_is_no_path_no_session_and_no_frame(spark: SparkSession, data: Path) -> None:
    with pytest.raises(DatasetError, match="is a DataFrame, not a path"):
        esk.Dataset(spark, spark.range(1))  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match="is a int, not a path"):
        esk.Dataset(spark, [1])  # type: ignore[list-item]
    with pytest.raises(DatasetError, match="options='header': pass a mapping of names to values"):
        esk.Dataset(spark, str(data), format="csv", options="header")  # type: ignore[arg-type]
    for asked in (esk.enable, lambda given: esk.Dataset(given, str(data)), esk.list_indexes, esk.last_query):
        with pytest.raises(EsSkippingError, match="'/lake' is not a Spark session"):
            asked("/lake")
    for asked in (esk.explain, esk.why_not):
        with pytest.raises(EsSkippingError, match=r"'SELECT 1' is not a DataFrame; .*spark\.sql"):
            asked("SELECT 1")


def test_paths_of_a_refresh_that_are_elsewhere(spark: SparkSession, data: Path) -> None:
    """A job with a wrong path would else refresh nothing, every night, and succeed."""
    dataset = esk.Dataset(spark, str(data))
    dataset.create_indexes(esk.MinMax("x"))
    for path in ("p=1", f"{data}2/p=1", "/elsewhere"):
        with pytest.raises(DatasetError, match=rf"{path} is not part of {data}, which is at file:{data}$"):
            dataset.refresh(paths=[path])
    for path in (f"{data}/p=1", f"{data}/p=7", str(data), str(data.parent)):
        dataset.refresh(paths=[path])


def test_formats(spark: SparkSession, data: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"as nonsense: .* does not know this format; csv, delta, iceberg, json, orc, parquet, text"
    ):
        esk.Dataset(spark, str(data), format="nonsense").create_indexes(esk.MinMax("x"))
    with pytest.raises(DatasetError, match="binaryFile"):
        esk.Dataset(spark, str(data), format="binaryFile").create_indexes(esk.MinMax("length"))


def test_refresh_without_an_index(spark: SparkSession, data: Path) -> None:
    with pytest.raises(DatasetError, match="no index to refresh"):
        esk.Dataset(spark, str(data)).refresh()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://", r"expected http://host:port"),
        ("https://user:pw@host:9200", r"user or password in the URL"),
        ("htp://x/y", r"htp.*For Elasticsearch use http\(s\)://host:port"),
        ("http://host:port", r"expected http://host:port"),
        ("host:9200", r"no scheme: write http://host:9200 or https://host:9200"),
    ],
)
def test_stores_that_cannot_be(spark: SparkSession, data: Path, url: str, message: str) -> None:
    spark.conf.set(ROOT_SETTING, url)
    with pytest.raises(SettingError, match=r"spark\.es_skipping\.store\.url .*" + message):
        esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"))


def test_a_setting_that_nobody_reads_is_named_once(
    spark: SparkSession, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.es_skipping.store.timeot", "5s")
    for _ in range(2):
        esk.Dataset(spark, str(data)).is_indexed()
    assert [record.getMessage() for record in caplog.records if "timeot" in record.getMessage()] == [
        "unknown setting spark.es_skipping.store.timeot: did you mean spark.es_skipping.store.timeout?"
    ]


def test_a_value_that_only_the_jvm_reads_and_cannot_is_told_once(
    spark: SparkSession, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.es_skipping.verify.limit", "many")
    for _ in range(2):
        esk.Dataset(spark, str(data)).is_indexed()
    told = [record.getMessage() for record in caplog.records if "verify" in record.getMessage()]
    assert told == ["spark.es_skipping.verify.limit is 'many', expected a positive whole number"]


def test_a_check_that_there_is_not_is_an_error(spark: SparkSession, data: Path) -> None:
    spark.conf.set("spark.es_skipping.verify", "stats")
    with pytest.raises(SettingError, match="verify is 'stats', expected none or stat or open or mac"):
        esk.Dataset(spark, str(data)).is_indexed()


def test_a_store_that_cannot_be_reached(spark: SparkSession, data: Path, caplog: pytest.LogCaptureFixture) -> None:
    spark.conf.set(ROOT_SETTING, "http://127.0.0.1:9")
    with pytest.raises(StoreError):
        esk.Dataset(spark, str(data)).create_indexes(esk.MinMax("x"))
    assert [record.name for record in caplog.records if record.name.startswith("elastic")] == [], "it is told once"


def test_corrupt_records_and_expressions_of_text_formats(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1, "s": "a"}\n{"x": broken}\n')
    schema = "x INT, s STRING, _corrupt_record STRING"
    dataset = esk.Dataset(spark, f"{tmp_path}/a.json", format="json", schema=schema)
    with pytest.raises(ColumnError, match="corrupt records"):
        dataset.create_indexes(esk.ValueList("_corrupt_record"))
    with pytest.raises(ColumnError, match="not null when its columns are"):
        dataset.create_indexes(esk.ValueList("coalesce(s, 'none')"))
    assert dataset.create_indexes(esk.ValueList("upper(s)"), esk.MinMax("x")).added == 1


def test_plain_names_are_what_spark_says_they_are(spark: SparkSession, tmp_path: Path, monkeypatch: Any) -> None:
    """Columns that are read off the schema are resolved to the same as those that Spark is asked about."""
    types = (
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,0)"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    )
    named = [f"CAST(NULL AS {type}) AS c{at}" for at, type in enumerate(types)]
    frame = spark.range(3).selectExpr("id", "id % 2 AS p", "id AS Mixed", "id AS `größe`", *named)
    frame.write.partitionBy("p").parquet(str(tmp_path / "t"))
    source = Source.open(spark, Reading((str(tmp_path / "t"),)))
    names = [name for name in source.df.columns if name != "p"]
    read_off = [columns._plain(source, name) for name in names]
    monkeypatch.setattr(columns, "_plain", lambda *_: None)
    assert [resolve(source, name) for name in names] == read_off
    assert len(names) == 17
    monkeypatch.undo()
    assert resolve(source, "mixed").operand == resolve(source, "Mixed").operand
    with pytest.raises(ColumnError, match="partition column"):
        resolve(source, "p")
