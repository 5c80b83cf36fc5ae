"""Filters on user functions that were declared with a version: exactly which objects a query reads."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import es_skipping as esk
from es_skipping.errors import ColumnError, IndexDefinitionError
from es_skipping.spark.relations import expression_tree
from tests.jvm import OPTIONS
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age, objects_by_predicate, objects_read

FILES = 5

JAVA = """
public class Tail implements org.apache.spark.sql.api.java.UDF1<String, String> {
  @Override public String call(String text) { return text == null ? null : text.substring(text.length() - 1); }
}
"""

SCALA = """
object Crest {
  def register(spark: org.apache.spark.sql.SparkSession): Unit =
    spark.udf.register("crest", (text: String) => if (text == null) null else text.takeRight(1).toUpperCase)
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
    "crest(word) = 'D'": 1,
    "crest(word) IN ('A', 'E') AND id < 90": 2,
    "taxi(id, part, 50, 2.5D) < 5": 1,  # the objects are at 21 n to 21 n + 19 from (0, 0), the point at 52.5
    "taxi(50, 2.5, id, part) < 5": 1,
    "NOT taxi(id, part, 50, 2.5D) >= 13": 3,
    "taxi(id, part, 1, 1) > 500": 0,
    "taxi(part, id, 50, 2.5D) < 5": 5,  # other columns
    "cab(id, part, 50, 2.5D) < 5": 1,  # a UDF, and the same in Python
    "taxi(id, part, 50, id) < 5": 5,  # no point
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
    """A Java function and a Scala one, compiled; Scala's compiler comes with Spark."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "Tail.java").write_text(JAVA, encoding="ascii")
    (folder / "Crest.scala").write_text(SCALA, encoding="ascii")
    jars = Path(pyspark.__file__).parent / "jars"
    classes = folder / "classes"
    classes.mkdir()
    java = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", str(classes), str(folder / "Tail.java")]
    scala = ["java", *OPTIONS.split(), "-cp", f"{jars}/*", "scala.tools.nsc.Main", "-usejavacp", "-d", str(classes)]
    for command in (java, [*scala, str(folder / "Crest.scala")]):
        subprocess.run(command, check=True, capture_output=True)
    return Path(shutil.make_archive(str(folder / "functions"), "zip", classes)).rename(folder / "functions.jar")


def declared(spark: SparkSession, jar: Path, version: str = "1") -> None:
    """One function of each sort: plain Python, a UDF, a pandas UDF, Java, Scala, a monotone one."""
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
    taxi = lambda a, b, c, d: float(abs(a - c) + abs(b - d))  # noqa: E731
    esk.declare_function("taxi", taxi, version=version, returns="double", metric=True, spark=spark)
    esk.declare_function("cab", F.udf(taxi, "double"), version=version, metric=taxi, spark=spark)
    spark.sql(f"ADD JAR '{jar}'")
    esk.declare_function("tail", "Tail", version=version, returns="string", spark=spark)
    register_crest(spark)
    esk.declare_function("crest", version=version, spark=spark)


def register_crest(spark: SparkSession) -> None:
    """As a Scala program does it; the jar was added to the session."""
    jvm: Any = spark._jvm
    loader = spark._jsparkSession.artifactManager().classloader()
    crest = jvm.java.lang.Class.forName("Crest", True, loader)
    session = jvm.java.lang.Class.forName("org.apache.spark.sql.SparkSession")
    types = spark.sparkContext._gateway.new_array(jvm.java.lang.Class, 1)
    types[0] = session
    given = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 1)
    given[0] = spark._jsparkSession
    crest.getMethod("register", types).invoke(None, given)


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
        esk.ValueList("crest(word)"),
        esk.MetricDistance(["id", "part"], origin=[0, 0], metric="taxi"),
        esk.MetricDistance(["id", "part"], origin=[0, 0], metric="cab"),
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


def test_families_of_user_agents(spark: SparkSession, tmp_path: Path) -> None:
    """The example of the paper: files hold requests of some families, in no order that a column's bounds would tell."""
    webkit = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    agents = [
        "Mozilla/5.0 (X11; Linux x86_64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0",
        webkit + " Chrome/{n}.0.0.0 Safari/537.36",
        webkit + " Chrome/{n}.0.0.0 Safari/537.36 Edg/{n}.0",
        "curl/7.{n}.0",
    ]
    path = str(tmp_path / "requests")
    for agent in agents:
        rows = [(agent.format(n=n),) for n in range(80, 90)] + [("curl/8.1",)]
        spark.createDataFrame(rows, "user_agent string").coalesce(1).write.mode("append").parquet(path)
    age(Path(path))

    def family_of(agent: str) -> str | None:
        from ua_parser import parse_user_agent

        found = parse_user_agent(agent or "")
        return found.family if found else None

    ua_family = esk.declare_function("ua_family", family_of, version="ua-parser 1", returns="string", spark=spark)
    esk.Dataset(spark, path).create_indexes(esk.Formatted("user_agent", "ua_family"))
    esk.enable(spark)
    read = spark.read.parquet(path)
    for family, objects in [("Firefox", 1), ("Chrome", 1), ("Edge", 1), ("curl", 4), ("Opera", 0)]:
        for found in (read.where(f"ua_family(user_agent) = '{family}'"), read.where(ua_family("user_agent") == family)):
            assert len(found.collect()) == {"curl": 14, "Opera": 0}.get(family, 10)
            assert num_files(found) == [objects], family


def test_the_same_code_called_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    """A text where a number was promised is null of a plain function, and may be cast where Arrow brings it."""
    path = str(tmp_path / "numbers")
    spark.range(0, 40, 1, 4).write.parquet(path)
    age(Path(path))
    text = lambda number: str(number)  # noqa: E731
    esk.declare_function("number", F.udf(text, "int", useArrow=False), version="1", spark=spark)
    assert esk.Dataset(spark, path).create_indexes(esk.ValueList("number(id)")).failed == ()
    esk.enable(spark)
    spark.read.parquet(path).createOrReplaceTempView("t")
    question = "SELECT id FROM t WHERE number(id) IS NOT NULL"
    assert objects_read(spark, question) == [0]
    spark.udf.register("number", F.udf(text, "int", useArrow=True))
    assert objects_read(spark, question) == [4]


ALIKE = [
    (
        "from_csv(s, 'd date', map('dateFormat', 'dd/MM/yyyy')).d",
        "from_csv(s, 'd date', map('dateFormat', 'MM/dd/yyyy')).d",
    ),
    (
        "from_xml(s, 'd date', map('dateFormat', 'dd/MM/yyyy')).d",
        "from_xml(s, 'd date', map('dateFormat', 'MM/dd/yyyy')).d",
    ),
    ("to_csv(st, map('sep', ';'))", "to_csv(st, map('sep', '|'))"),
    ("s LIKE ANY ('a_b', 'c%d_e')", "s LIKE ANY ('a_b', 'c%d_f')"),
    ("s NOT LIKE ALL ('a_b', 'c%d_e')", "s NOT LIKE ALL ('a_b', 'c%d_f')"),
    ("transform(a, x -> x + 1)", "transform(a, x -> x + 2)"),
    ("zip_with(a, a, (x, y) -> x - y)", "zip_with(a, a, (y, x) -> x - y)"),
    ("CASE WHEN s = 'x' THEN 1 ELSE 2 END", "CASE WHEN s = 'x' THEN 1 ELSE 3 END"),
    ("mask(s)", "mask(s, 'Y')"),
    ("str_to_map(s)['a']", "str_to_map(s, ';')['a']"),
    ("parse_url(s, 'HOST')", "parse_url(s, 'PATH')"),
    ("element_at(a, 1)", "element_at(a, 2)"),
    ("many.x", "many.y"),
]
"""Calls of the same functions that compute something else, whatever of Catalyst's fields tells so."""


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_calls_that_differ_are_told_apart(spark: SparkSession, tmp_path: Path, one: str, other: str) -> None:
    many = "array(named_struct('x', id, 'y', id))"
    source = spark.range(1).selectExpr("'a' AS s", "array(id) AS a", "named_struct('x', id) AS st", f"{many} AS many")
    source.write.parquet(str(tmp_path / "t"))
    df = spark.read.parquet(str(tmp_path / "t"))
    trees = [expression_tree(df.selectExpr(text)) for text in (one, one, other)]
    assert trees[0] == trees[1] != trees[2]
    assert "Opaque" not in str(trees)


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
        ("f", F.udf(len, "int"), {"version": "1", "metric": True}),
        ("f", len, {"version": "1", "returns": "int", "metric": "euclidean"}),
    ]:
        with pytest.raises(IndexDefinitionError, match="function"):
            esk.declare_function(name, function, spark=spark, **options)  # type: ignore[arg-type]


def test_fields_of_a_variant(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes the fields out as it reads, by a schema of its own; reports say how to have it not do so."""
    path, key = str(tmp_path / "variants"), "spark.sql.variant.pushVariantIntoScan"
    made = spark.range(0, 40, 1, FILES).selectExpr("id", "parse_json(concat('{\"a\":', id, '}')) AS v")
    made.write.parquet(path)
    age(tmp_path)
    field = "variant_get(v, '$.a', 'int')"
    esk.Dataset(spark, path).create_indexes(esk.ValueList(field))

    def query(session: SparkSession) -> DataFrame:
        return session.read.parquet(path).where(f"{field} = 3").selectExpr("id", "to_json(v)")

    spark.conf.set(key, "false")
    assert objects_read(spark, query) == [1]
    spark.conf.set(key, "true")
    assert objects_read(spark, query) == [FILES]
    (scan,) = esk.last_query(spark).scans
    assert key in str(scan.reason)
