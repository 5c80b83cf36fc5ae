"""What Spark reads of a column of CSV can depend on which other columns a query reads; no index believes such files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build.text_doubts import quotes_in_doubt
from tests.soundness.harness import objects_planned
from tests.spark.skipping_on_off import age, reading

SCHEMA = "a STRING, b STRING, c STRING"


@pytest.mark.parametrize(
    ("text", "options", "certain"),
    [
        ('x,x,x\n"","",","\n', {"escape": '"'}, False),
        ('x,x,x\n"\\\\",","\n', {}, False),
        ('x,x,x\n"","",","\n', {"escape": '"', "columnPruning": "false"}, True),
        ('x,x,x\n"","",","\n', {"escape": '"', "multiLine": "true"}, True),
        ('x,"x"x,","\n', {"unescapedQuoteHandling": "BACK_TO_DELIMITER"}, False),
        ('x,x,x\n"","",","\n', {"quote": "'"}, True),
        ('x,x,x\n"","",","\n', {}, True),
        ("x,''',x\n", {"quote": "'", "escape": "'", "encoding": "UTF-16LE"}, False),
        ("x,'x',x\n", {"quote": "'", "escape": "'", "encoding": "UTF-16LE"}, True),
        ('|x"y||\n||"|| ', {"sep": "||"}, False),
        ("x||y||,\nx|||| ", {"sep": "||"}, True),
    ],
)
def test_a_file_is_believed_where_no_other_column_matters(
    spark: SparkSession, tmp_path: Path, text: str, options: dict[str, str], certain: bool
) -> None:
    path = tmp_path / "odd dir %20"
    path.mkdir()
    (path / "a{1,2}[3] é.csv").write_bytes(text.encode(options.get("encoding", "utf-8")))
    age(path)
    made = esk.Dataset(spark, str(path), format="csv", options=options, schema=SCHEMA)
    assert made.create_indexes(esk.ValueList("c")).failed == ()

    def where(condition: str, *columns: str) -> int:
        def query(session: SparkSession) -> DataFrame:
            df = session.read.schema(SCHEMA).options(**options).csv(str(path))
            return df.where(condition).select(*columns)

        return reading(spark, query)

    assert where("c = 'nowhere'", "c") == (0 if certain else 1)
    where("c = ','", "c")
    where("c = ','", "a", "b", "c")


FIELDS = [
    *(
        "x",
        "x",
        "",
        '""',
        '","',
        '"x"',
        '"x""x"',
        ' "x"',
        '"x" ',
        '"x',
        'x"',
        '\\"',
        '"\\""',
        '""""',
        '"x"x',
        " ",
        "\\",
    ),
    *('"\\\\"', '"', *['""', '"\\\\"', '","'] * 6),
]


@pytest.mark.parametrize("escape", ["\\", '"'])
def test_random_files(spark: SparkSession, tmp_path: Path, escape: str) -> None:
    """Every row that a query would see of a file is in a file that the query plans to read."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    draw = random.Random(7 + ord(escape))
    for file in range(100):
        rows = [",".join(draw.choice(FIELDS) for _ in range(draw.randint(1, 4))) for _ in range(draw.randint(1, 3))]
        (tmp_path / f"{file}.csv").write_text("\n".join(rows))
    age(tmp_path)
    options = {"escape": escape}
    dataset = esk.Dataset(spark, str(tmp_path), format="csv", options=options, schema=SCHEMA)
    dataset.create_indexes(*map(esk.ValueList, "abc"))
    kept = 0
    seen: set[tuple[str, str]] = set()
    for columns in (("b",), ("c",), ("b", "c")):
        df = spark.read.schema(SCHEMA).options(**options).csv(str(tmp_path))
        df.createOrReplaceTempView("texts")
        esk.disable(spark)
        rows = df.select(*columns, "_metadata.file_path").collect()
        esk.enable(spark)
        for value in sorted({row[columns[-1]] for row in rows} - {None}):
            holding = {row.file_path.rpartition("/")[2] for row in rows if row[columns[-1]] == value}
            literal = value.replace("\\", "\\\\").replace("'", "\\'")
            planned = objects_planned(
                spark, f"SELECT {', '.join(columns)} FROM texts WHERE {columns[-1]} = '{literal}'"
            )
            assert planned is not None and holding <= planned, (columns, value)
            seen.add((columns[-1], value))
            kept += len(planned)
    assert len(seen) > 20 and kept < 100 * 3 * len(seen) / 2


def test_what_is_looked_for() -> None:
    assert quotes_in_doubt({"escape": ""}) == [b'\0"']
    assert quotes_in_doubt({"quote": "\0"}) == []
    assert quotes_in_doubt({"unescapedquotehandling": "skip_value"}) == [b'"']
    assert quotes_in_doubt({"unescapedquotehandling": "Stop_At_Delimiter"}) == [b'\\"']
    assert quotes_in_doubt({"encoding": "UTF-16LE"}) == [b'\\\x00"\x00']
    assert quotes_in_doubt({"charset": "cp037"}) == ['\\"'.encode("cp037")]
    for unknown in ("x-made-up", "ISO-2022-JP", "UTF-7"):
        assert quotes_in_doubt({"encoding": unknown}) is None
    assert quotes_in_doubt({"escape": "\n"}) is None


# --- times without a date -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "line", "options", "certain"),
    [
        ("csv", "5,12:30:00", {}, False),
        ("csv", '5,"12:30"', {}, False),
        ("csv", "5,  T1:30", {}, False),
        ("csv", "5\t1:2:3", {"sep": "\\t"}, False),
        ("csv", "5||01:00+01:00", {"sep": "||"}, False),
        ("csv", "5,T12", {}, False),
        ("json", '{"a":5,"t":" T5"}', {}, False),
        ("csv", '5,""', {"emptyValue": "12:30"}, False),
        ("csv", "5,2024-01-01 12:30:00", {}, True),
        ("csv", '5,"2024-01-01T12:30:00.5 +01:00"', {}, True),
        ("csv", "5\t2024-01-01 12:30:00-01:00", {"sep": "\t"}, True),
        ("json", '{"a":5,"t":"12:30:00"}', {}, False),
        ("json", '{"a":5,"t":"\\t1:30"}', {}, False),
        ("json", '{"a":5,"t":"\\u0031:30"}', {}, False),
        ("json", '{"a":5,"t": "2024-01-01 12:30:00"}', {}, True),
    ],
)
def test_a_time_of_day_is_of_no_day(
    spark: SparkSession, tmp_path: Path, format: str, line: str, options: dict[str, str], certain: bool
) -> None:
    path = tmp_path / "t"
    path.mkdir()
    (path / f"a.{format}").write_text(line)
    age(path)
    schema = "a INT, t TIMESTAMP"
    dataset = esk.Dataset(spark, str(path), format=format, options=options, schema=schema)
    dataset.create_indexes(esk.MinMax("t"), esk.MinMax("a"))

    def where(condition: str) -> int:
        def query(session: SparkSession) -> DataFrame:
            return session.read.format(format).schema(schema).options(**options).load(str(path)).where(condition)

        return reading(spark, query)

    assert where("t > timestamp'9000-01-01'") == (0 if certain else 1)
    dataset.drop_indexes(esk.MinMax("t"))


@pytest.mark.parametrize(
    "expression",
    [
        "cast(s AS timestamp)",
        "to_timestamp(s)",
        "hour(s) + 1",
        "try_cast(s AS timestamp)",
        "cast(s AS timestamp) IS NULL",
    ],
)
def test_a_text_is_no_timestamp_of_any_day(spark: SparkSession, tmp_path: Path, expression: str) -> None:
    path = str(tmp_path / "t")
    spark.sql("SELECT '12:30:00' AS s, '2024-01-01 00:00:00' AS u").write.parquet(path)
    age(path)
    dataset = esk.Dataset(spark, path)
    with pytest.raises(esk.ColumnError, match="the day of the query"):
        dataset.create_indexes(esk.MinMax(expression))
    dataset.create_indexes(esk.MinMax("to_timestamp(u, 'yyyy-MM-dd HH:mm:ss')"), esk.MinMax("cast(u AS date)"))
    assert reading(spark, lambda s: s.read.parquet(path).where("cast(u AS date) > date'2024-01-01'")) == 0


# --- headers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lead", "certain"), [("", True), ("\n" * 100, False), ("# no\n" * 30, False), (" \t\n", False)]
)
def test_a_header_behind_something_can_be_a_row(spark: SparkSession, tmp_path: Path, lead: str, certain: bool) -> None:
    path = tmp_path / "t"
    path.mkdir()
    (path / "a.csv").write_text(f"{lead}name,v\nx,1\n\n# yes\ny,2\n")
    age(path)
    options = {"header": "true", "comment": "#"}
    schema = "name STRING, v STRING"
    esk.Dataset(spark, str(path), format="csv", options=options, schema=schema).create_indexes(esk.ValueList("name"))
    for size in (None, "40"):
        if size:
            spark.conf.set("spark.sql.files.maxPartitionBytes", size)
        read = reading(spark, lambda s: s.read.schema(schema).options(**options).csv(str(path)).where("name = 'name'"))
        assert (read == 0) is certain


def test_a_table_that_ignores_what_it_cannot_read(spark: SparkSession, tmp_path: Path) -> None:
    """Beside a build that would take it for empty: by its path it is read without that option."""
    path = tmp_path / "t"
    spark.sql("SELECT 5 AS x, 'a' AS y").coalesce(1).write.parquet(str(path))
    spark.sql("SELECT 7 AS x, 1 AS y").coalesce(1).write.mode("append").parquet(str(path))
    age(path)
    options = f"OPTIONS (ignoreCorruptFiles 'true') LOCATION '{path}'"
    spark.sql(f"CREATE TABLE ignoring (x INT, y INT) USING parquet {options}")
    try:
        with pytest.raises(esk.DatasetError, match="ignorecorruptfiles = true"):
            esk.Dataset(spark, table="ignoring").create_indexes(esk.ValueList("x"), esk.ValueList("y"))
        made = esk.Dataset(spark, str(path), schema="x INT, y INT").create_indexes(
            esk.ValueList("x"), esk.ValueList("y")
        )
        assert len(made.failed) == 1
        assert reading(spark, "SELECT x FROM ignoring WHERE x = 5") == 1
    finally:
        spark.sql("DROP TABLE ignoring")


# --- years of two digits ------------------------------------------------------------------------------------------


def test_a_year_of_two_digits_is_of_no_century(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    path = tmp_path / "t"
    path.mkdir()
    (path / "a.csv").write_text("01.02.46\n")
    age(path)
    for pattern, certain in (("dd.MM.yy", False), ("dd.MM.yyyy", True)):
        options = {"dateFormat": pattern}
        dataset = esk.Dataset(spark, str(path), format="csv", options=options, schema="d DATE")
        dataset.create_indexes(esk.MinMax("d"))

        def query(session: SparkSession, pattern: str = pattern) -> DataFrame:
            return session.read.schema("d DATE").csv(str(path), dateFormat=pattern).where("d > date'3000-01-01'")

        assert reading(spark, query) == (0 if certain else 1), pattern
        dataset.drop_indexes(all=True)
    texts = esk.Dataset(spark, str(path), format="csv", schema="s STRING")
    with pytest.raises(esk.ColumnError, match="a two-digit year"):
        texts.create_indexes(esk.MinMax("to_date(s, 'dd.MM.yy')"))
    texts = esk.Dataset(spark, str(path), format="csv", schema="s STRING, p STRING")
    with pytest.raises(esk.ColumnError, match="a two-digit year"):  # which the other column may have
        texts.create_indexes(esk.MinMax("to_date(s, p)"))


@pytest.mark.parametrize(
    ("format", "separator", "certain"), [("text", "||", False), ("json", "--", False), ("text", "|;", True)]
)
def test_lines_that_depend_on_where_a_split_begins(
    spark: SparkSession, tmp_path: Path, format: str, separator: str, certain: bool
) -> None:
    """`a|||b` has the lines `a` and `|b`, or `a|` and `b` for a split that begins at the second bar."""
    lines = ["aa", "bb", "cc", "bb", "dd"] * 4
    doubled = separator + separator[-1] + separator
    text = doubled.join(f'{{"value":"{one}"}}' if format == "json" else one for one in lines)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text(text)
    age(tmp_path / "data")
    made = esk.Dataset(
        spark, str(tmp_path / "data"), format=format, options={"lineSep": separator}, schema="value STRING"
    )
    assert made.create_indexes(esk.ValueList("value")).failed == ()

    def query(session: SparkSession) -> DataFrame:
        reader = session.read.schema("value STRING").format(format).option("lineSep", separator)
        return reader.load(str(tmp_path / "data")).where("value = 'bb'")

    def nowhere(session: SparkSession) -> DataFrame:
        reader = session.read.schema("value STRING").format(format).option("lineSep", separator)
        return reader.load(str(tmp_path / "data")).where("value = 'nowhere'")

    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    try:
        for size in (3, 5, 7):
            spark.conf.set("spark.sql.files.maxPartitionBytes", str(size))
            reading(spark, query)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert reading(spark, nowhere) == (0 if certain else 1)
