"""What Spark reads of a column of CSV can depend on which other columns a query reads; no index believes such files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.spark.csv_pruning import doubtful_text
from tests.soundness.harness import objects_planned
from tests.spark.real import age, reading

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
    assert doubtful_text({"escape": ""}) == [b'\0"']
    assert doubtful_text({"quote": "\0"}) == []
    assert doubtful_text({"unescapedquotehandling": "skip_value"}) == [b'"']
    assert doubtful_text({"unescapedquotehandling": "Stop_At_Delimiter"}) == [b'\\"']
    assert doubtful_text({"encoding": "UTF-16LE"}) == [b'\\\x00"\x00']
    assert doubtful_text({"charset": "cp037"}) == ['\\"'.encode("cp037")]
    for unknown in ("x-made-up", "ISO-2022-JP", "UTF-7"):
        assert doubtful_text({"encoding": unknown}) is None
    assert doubtful_text({"escape": "\n"}) is None
