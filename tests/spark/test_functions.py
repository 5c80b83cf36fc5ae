"""Filters on user functions that were declared with a version: exactly which objects a query reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.errors import ColumnError, IndexDefinitionError
from tests.spark.objects_read import num_files
from tests.spark.real import age, objects_by_predicate, objects_read

FILES = 5

JAVA = """
public class Tail implements org.apache.spark.sql.api.java.UDF1<String, String> {
  @Override public String call(String text) { return text == null ? null : text.substring(text.length() - 1); }
}
"""

EXPECTED = {
    "family(agent) = 'agent2'": 1,
    "family(agent) IN ('agent2', 'agent4', 'x')": 2,
    "family(agent) <> 'agent2'": 4,
    "family(agent) LIKE 'agent3%' AND id > 0": 1,
    "NOT (family(agent) = 'agent2' OR id < 20)": 3,
    "length(family(agent)) = 6": 5,  # nobody indexed it
    "family(concat(agent, 'x')) = 'agent2'": 5,  # another argument
    "is_even(id div 10)": 5,
    "is_odd(part)": 2,
    "NOT is_odd(part)": 3,
    "shout(agent) = 'AGENT1/38'": 1,
    "tail(word) = 'c'": 1,
    "tail(word) <> 'c'": 4,
    "dozens(id) >= 8": 1,  # by the MinMax of id: from 96 on
    "dozens(id) = 3": 2,
    "lower(tail(word)) = 'c'": 5,
}


@pytest.fixture(scope="module")
def data(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("functions") / "data"
    base.range(0, FILES * 20, 1, FILES).selectExpr(
        "id",
        "id div 20 AS part",
        "concat('agent', id div 20, '/', id - id % 2) AS agent",
        "concat('word-', chr(97 + cast(id div 20 AS int))) AS word",
    ).write.parquet(str(path))
    age(path)
    return str(path)


@pytest.fixture(scope="module")
def jar(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Java function, compiled."""
    folder = tmp_path_factory.mktemp("java")
    (folder / "Tail.java").write_text(JAVA, encoding="ascii")
    jars = Path(pyspark.__file__).parent / "jars"
    classes = folder / "classes"
    command = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", str(classes), str(folder / "Tail.java")]
    subprocess.run(command, check=True, capture_output=True)
    return Path(shutil.make_archive(str(folder / "tail"), "zip", classes)).rename(folder / "tail.jar")


def declared(spark: SparkSession, jar: Path, version: str = "1") -> None:
    """One function of each sort: plain Python, a UDF, a pandas UDF, Java, a monotone one."""
    esk.declare_function("family", lambda agent: agent.split("/")[0], version=version, returns="string", spark=spark)
    esk.declare_function("is_odd", F.udf(lambda n: n % 2 == 1, "boolean"), version=version, spark=spark)
    shout = F.pandas_udf(lambda texts: texts.str.upper(), "string")  # type: ignore[call-overload]
    esk.declare_function("shout", shout, version=version, spark=spark)
    esk.declare_function(
        "dozens",
        lambda n: None if n is None else n // 12,
        version=version,
        returns="bigint",
        monotone=True,
        spark=spark,
    )
    spark.sql(f"ADD JAR '{jar}'")
    esk.declare_function("tail", "Tail", version=version, returns="string", spark=spark)


@pytest.fixture
def on(spark: SparkSession, data: str, jar: Path) -> SparkSession:
    spark.conf.set("spark.es_skipping.strict", "true")
    declared(spark, jar)
    spark.udf.register("is_even", lambda n: n % 2 == 0, "boolean")
    result = esk.Dataset(spark, data).create_indexes(
        esk.MinMax("id"),
        esk.Formatted("agent", "family"),
        esk.Formatted("part", "is_odd"),
        esk.BloomFilter("shout(agent)"),
        esk.ValueList("tail(word)"),
    )
    assert (result.added, result.failed) == (FILES, ())
    return spark


def test_functions(on: SparkSession, data: str, jar: Path) -> None:
    read = lambda s: s.read.parquet(data)  # noqa: E731
    assert objects_by_predicate(on, read, EXPECTED) == EXPECTED
    # Another version, another session, or other code under the same name: the index says nothing of it.
    question = "SELECT id FROM t WHERE family(agent) = 'agent2'"
    for_tail = "SELECT id FROM t WHERE tail(word) = 'c'"
    read(on).createOrReplaceTempView("t")
    on.udf.register("family", lambda agent: agent.split("/")[0] + "", "string")
    assert objects_read(on, question) == [5], "redefined after it was declared"
    declared(on, jar, version="2")
    assert objects_read(on, question) == [5]
    assert objects_read(on, for_tail) == [5]
    declared(on, jar)
    assert objects_read(on, question) == [1]
    assert objects_read(on, for_tail) == [1]
    other = on.newSession()
    esk.enable(other)
    other.udf.register("family", lambda agent: "agent0", "string")
    found = read(other).where("family(agent) = 'agent0'")
    assert (len(found.collect()), num_files(found)) == (FILES * 20, [5])
    family = esk.declare_function(
        "family", lambda agent: agent.split("/")[0], version="1", returns="string", spark=other
    )
    by_name = read(other).where(family("agent") == "agent2")
    assert len(by_name.collect()) == 20
    assert num_files(by_name) == [1], "as the DataFrame API calls it"


def test_a_function_that_nobody_declared_is_not_indexed(spark: SparkSession, data: str) -> None:
    spark.udf.register("mystery", lambda text: text, "string")
    with pytest.raises(ColumnError, match=r"mystery.*declare"):
        esk.Dataset(spark, data).create_indexes(esk.Formatted("agent", "mystery"))


def test_what_is_no_function_is_refused(spark: SparkSession) -> None:
    for name, function, options in [
        ("f g", len, {"version": "1", "returns": "int"}),
        ("f", len, {"version": "", "returns": "int"}),
        ("f", len, {"version": "1"}),
        ("f", 5, {"version": "1", "returns": "int"}),
        ("f", F.udf(len, "int"), {"version": "1", "monotone": True}),
    ]:
        with pytest.raises(IndexDefinitionError, match="function"):
            esk.declare_function(name, function, spark=spark, **options)  # type: ignore[arg-type]
