"""What Spark selects for the collectors, in a real session: what plain Python cannot show."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from es_skipping.indexes.geobox import GeoBox
from es_skipping.indexes.prefix import Prefix
from es_skipping.indexes.suffix import Suffix
from es_skipping.predicates.types import parse_type

TEXTS = ["", "ab", "abcdefghij", "\U0001f600éa\u0301bc", "\U0010ffff\ud7ff\ue000", None]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 1000, 2**31 - 1])
def test_ends_are_cut_by_code_points(spark: SparkSession, length: int) -> None:
    frame = spark.createDataFrame([(text,) for text in TEXTS], "s string")
    ends = [end for index in (Prefix("s", length), Suffix("s", length)) for end in index.collected([F.col("s")])]
    for text, prefix, suffix in frame.select("s", *ends).collect():
        assert (prefix, suffix) == ((None, None) if text is None else (text[:length], text[-length:]))


@pytest.mark.parametrize("broken", ["c3", "6162c3", "ff", "6162eda080"])
def test_bytes_that_are_no_utf8_reach_the_collector_as_such(spark: SparkSession, broken: str) -> None:
    # From rows, not literals: what lies in memory behind a short string differs.
    frame = spark.createDataFrame([(bytearray.fromhex(broken),), (bytearray(b"abc"),)], "b binary")
    for index in (Suffix("s", 2), Prefix("s", 15), Suffix("s", 15)):
        (end,) = index.collected([F.col("b").cast("string")])
        table = frame.select(end.cast("binary").alias("e")).toArrow()
        column = table["e"].combine_chunks()
        strings = pa.Array.from_buffers(pa.string(), len(column), column.buffers(), column.null_count)
        collector = index.collector([parse_type("string")])
        assert collector.finish(collector.partial([strings])) is None


def test_a_prefix_of_a_long_string_never_reads_beyond_its_end(spark: SparkSession) -> None:
    odd = [(bytearray([first]) * 8,) for first in range(0x80, 0x100)]
    frame = spark.createDataFrame(odd, "b binary").select("b", F.col("b").cast("string").alias("s"))
    (end,) = Prefix("s", 2).collected([F.col("s")])
    for whole, cut in frame.select("b", end.cast("binary")).collect():
        assert whole.startswith(cut)


def test_coordinates_come_as_doubles(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 9007199254740993 AS a, CAST('12345678901234567.89' AS DECIMAL(19, 2)) AS b")
    table = frame.select(*GeoBox("a", "b").collected([F.col("a"), F.col("b")])).toArrow()
    assert [field.type for field in table.schema] == [pa.float64()] * 2
    assert [column[0].as_py() for column in table.columns] == [
        9007199254740992.0,
        float("12345678901234567.89"),
    ]
