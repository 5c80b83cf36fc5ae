"""The switch: per session, on a running session, over its new sessions, and with what a builder brings."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.source import build_session
from es_skipping.errors import EsSkippingError
from es_skipping.spark import bridge, launch_conf, relations, services
from es_skipping.spark.classic import classic_session
from tests.processes import run_python, without_spark
from tests.spark.conftest import ENABLED
from tests.spark.objects_read import file_indexes, num_files
from tests.spark.row_oracle import Honest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def path(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("session") / "d"
    base.range(0, 40, 1, 4).write.parquet(str(path))
    return str(path)


def read(spark: SparkSession, path: str) -> tuple[list[int], list[str]]:
    df = spark.read.parquet(path).where("id < 5")
    assert len(df.collect()) == 5
    return num_files(df), file_indexes(df)


@pytest.fixture
def answering(base: SparkSession, honest: Honest, know: Callable[..., None], path: str, monkeypatch: Any) -> Honest:
    """`honest` in place of the real look-up, so that `esk.enable` installs it."""
    know(honest, path)
    monkeypatch.setattr(services.service_of(base), "answer", honest)
    return honest


def test_enable_disable(session: SparkSession, answering: Honest, path: str) -> None:
    assert not esk.is_enabled(session)
    assert read(session, path) == ([4], ["InMemoryFileIndex"])
    esk.enable(session)
    esk.enable(session)  # twice is as once
    assert esk.is_enabled(session)
    assert read(session, path) == ([1], ["SkippingFileIndex"])
    esk.disable(session)
    assert not esk.is_enabled(session)
    assert read(session, path) == ([4], ["InMemoryFileIndex"])
    esk.enable(session)
    assert read(session, path) == ([1], ["SkippingFileIndex"])


def test_other_sessions_are_left_alone(base: SparkSession, answering: Honest, path: str) -> None:
    older, session = base.newSession(), base.newSession()
    older_child = session.newSession()
    assert read(older, path)[0] == [4]
    assert read(older_child, path)[0] == [4]
    esk.enable(session)
    assert read(session, path)[0] == [1]
    for other in (older, older_child, base.newSession(), base):
        assert not esk.is_enabled(other)
        assert read(other, path) == ([4], ["InMemoryFileIndex"])


def test_new_sessions_of_it_are_included(session: SparkSession, answering: Honest, path: str) -> None:
    session.conf.set("spark.es_skipping.store.url", "file:/one")
    esk.enable(session)
    child = session.newSession()
    assert esk.is_enabled(child)
    assert child.conf.get("spark.es_skipping.store.url") == "file:/one"
    assert read(child, path)[0] == [1]
    esk.disable(child)
    assert read(child, path)[0] == [4]
    assert not esk.is_enabled(child.newSession())
    assert read(session, path)[0] == [1]
    session.conf.set("spark.es_skipping.store.url", "file:/two")
    assert read(session, path)[0] == [1]
    assert session.newSession().conf.get("spark.es_skipping.store.url") == "file:/two"
    session.conf.unset("spark.es_skipping.store.url")
    assert read(session, path)[0] == [1]
    assert session.newSession().conf.get("spark.es_skipping.store.url", None) is None


def test_the_plain_setting_is_the_same_switch(session: SparkSession, answering: Honest, path: str) -> None:
    esk.enable(session)
    session.conf.set(ENABLED, "FALSE")
    assert read(session, path)[0] == [4]
    session.conf.set(ENABLED, "True")
    assert esk.is_enabled(session)
    assert read(session, path)[0] == [1]
    session.conf.unset(ENABLED)
    assert not esk.is_enabled(session)


def test_configure_warns_when_a_session_runs(base: SparkSession) -> None:
    builder = SparkSession.builder.config("spark.app.name", "x")
    with pytest.warns(UserWarning, match="already runs"):
        assert esk.configure(builder) is builder


def test_classic_is_the_session_itself(session: SparkSession) -> None:
    assert classic_session(session) is session


def test_facts_objects_and_trees(session: SparkSession, path: str) -> None:
    df = session.read.parquet(path)
    facts = relations.relation_facts(df)
    assert (facts["format"], facts["roots"], facts["options"], facts["table"]) == (
        "parquet",
        [f"file:{path}"],
        {},
        None,
    )
    objects = list(relations.list_objects(df))
    assert len(objects) == 4
    for name, length, mtime in objects:
        stat = os.stat(name.removeprefix("file:"))
        assert (length, mtime) == (stat.st_size, stat.st_mtime_ns // 1_000_000)
    tree = relations.expression_tree(df.selectExpr("ID + 1"))
    assert (tree["c"], tree["ch"][0]["name"], tree["ch"][1]["v"]) == ("Add", "id", 1)
    assert relations.expression_tree(df.select(df.id))["c"] == "AttributeReference"
    with pytest.raises(esk.DatasetError, match="Range"):
        relations.relation_facts(session.range(3))
    with pytest.raises(esk.DatasetError, match="cannot be indexed"):
        relations.expression_tree(df.selectExpr("sum(id)"))


def test_what_is_not_the_rows_of_files(session: SparkSession, path: str) -> None:
    """An extension may put a filter or a mask around a table; what is read so must not be indexed as the files."""
    df = session.read.parquet(path)
    relations.refuse_all_but_files(df)
    relations.refuse_all_but_files(df.select("id"))
    with pytest.raises(esk.DatasetError, match="not read the rows of its files unchanged, but through a Filter"):
        relations.refuse_all_but_files(df.where("id > 5"))
    with pytest.raises(esk.DatasetError, match="its column id is not that of its files"):
        relations.refuse_all_but_files(df.selectExpr("id + 1 AS id"))


def run(script: str, tmp_path: Path, **env: str) -> dict[str, Any]:
    """Run a script in a Python of its own, and return the JSON of its last line."""
    environment = without_spark() | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, **env}
    done = run_python(textwrap.dedent(script), tmp_path, environment=environment, seconds=240)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


SKIP_HALF = """
import json, struct
from es_skipping.spark import bridge, relations
from es_skipping.catalog import ObjectId
from es_skipping.spark.classic import classic_session
import es_skipping as esk
from es_skipping.lookup.service import LookupService

def skip_all_but_one(spark, path):
    objects = list(relations.list_objects(classic_session(spark).read.parquet(path)))
    def answer(self, request):
        keys = [ObjectId(*o).key for o in objects[1:]]
        return b"\\x02\\x01" + struct.pack(">IBI", 1, 0, len(keys)) + b"".join(keys)
    LookupService.answer = answer
"""


def test_configure_adds_to_what_is_there(path: str, tmp_path: Path) -> None:
    other = tmp_path / "other.jar"
    other.write_bytes(b"PK\x05\x06" + b"\0" * 18)
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        f"spark.jars  {other}\nspark.sql.extensions=no.such.Extension\nspark.ui.enabled=false\nspark.driver.memory 1g\n"
    )
    script = (
        SKIP_HALF
        + f"""
from pyspark.sql import SparkSession
spark = esk.configure(SparkSession.builder.master("local[1]")).getOrCreate()
context = spark.sparkContext
loader = bridge.jvm_api(spark).getClass().getClassLoader().getClass().getName()
before = spark._jsparkSession.sessionState().columnarRules().size()
skip_all_but_one(spark, {path!r})
off = spark.read.parquet({path!r}).where("id >= 0").count()
esk.enable(spark)
on = spark.read.parquet({path!r}).where("id >= 0").count()
rules = spark._jsparkSession.sessionState().columnarRules().size()
print(json.dumps(dict(off=off, on=on, jars=context.getConf().get("spark.jars"), loader=loader, rules=[before, rules],
    extensions=context.getConf().get("spark.sql.extensions"), url=spark.conf.get("spark.sql.warehouse.dir"))))
spark.stop()
"""
    )
    result = run(script, tmp_path, SPARK_CONF_DIR=str(conf))
    assert result["jars"].split(",") == [str(other), bridge.JAR.as_uri()]
    assert result["extensions"] == "no.such.Extension"
    assert result["loader"] != "java.net.URLClassLoader"  # which is how `enable` brings the jar to a running session
    assert (result["off"], result["on"], result["rules"]) == (40, 10, [1, 1])


def test_connect_in_local_mode(path: str, tmp_path: Path) -> None:
    script = (
        SKIP_HALF
        + f"""
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote("local[1]")
spark = esk.configure(builder).getOrCreate()
real = LookupService.answer
skip_all_but_one(spark, {path!r})
counts = [spark.read.parquet({path!r}).where("id >= 0").count()]
esk.enable(spark)
counts += [spark.read.parquet({path!r}).where("id >= 0").count(), esk.is_enabled(spark)]
same = classic_session(spark)._jsparkSession.sessionUUID() == bridge.java_session(spark).sessionUUID()
esk.disable(spark)
counts += [spark.read.parquet({path!r}).where("id >= 0").count(), esk.is_enabled(spark)]
LookupService.answer = real
esk.enable(spark)  # whose callback is what was there when it was called
esk.disable(spark)
spark.conf.set("spark.es_skipping.store.url", {(tmp_path / "store").as_uri()!r})
tens = esk.declare_function("tens", lambda id: id // 10, version="1", returns="bigint", spark=spark)
made = esk.Dataset(spark, {path!r}).create_indexes(esk.ValueList("tens(id)"))
esk.enable(spark)
df = spark.read.parquet({path!r})
df.createOrReplaceTempView("t")
declared = [made.added, made.failed]
for found in (df.where(tens("id") == 3), spark.sql("SELECT * FROM t WHERE tens(id) = 3")):
    declared += [found.count(), [scan.objects_skipped for scan in esk.last_query(spark).scans]]
spark.udf.register("tens", lambda id: id // 10 + 1, "bigint")
declared += [spark.sql("SELECT * FROM t WHERE tens(id) = 1").count()]
print(json.dumps(dict(counts=counts, same=same, declared=declared, active=type(SparkSession.active()).__module__)))
spark.stop()
"""
    )
    result = run(script, tmp_path, SPARK_TESTING="1")  # its server then takes any port that is free
    assert result == {
        "counts": [40, 10, True, 40, False],
        "same": True,
        "declared": [4, [], 10, [3], 10, [3], 10],
        "active": "pyspark.sql.connect.session",
    }


class RemoteSession:
    """As much of a Connect session as is asked before its server is known to be elsewhere."""

    version = "4.3.0"

    class client:  # noqa: N801
        _user_id = "somebody"
        _session_id = "00000000-0000-0000-0000-000000000000"


def test_sessions_that_threads_make_at_once_leave_the_process_its_own(base: SparkSession) -> None:
    before = SparkSession._instantiatedSession
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: build_session(base), range(60)))
    assert SparkSession._instantiatedSession is before
    assert len({str(one._jsparkSession.sessionUUID()) for one in made}) == 60


def test_a_remote_connect_session_is_told(base: SparkSession) -> None:
    for function in (esk.enable, classic_session, bridge.java_session, bridge.jvm_api):
        with pytest.raises(EsSkippingError, match="runs on a remote server"):
            function(RemoteSession())  # type: ignore[arg-type]


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As before any Spark was started, with an empty folder of Spark's settings."""
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path


class Options:
    """What `configure` needs of a builder."""

    def __init__(self, **options: str) -> None:
        self._options = {key.replace("_", "."): value for key, value in options.items()}

    def config(self, key: str, value: str) -> Options:
        self._options[key] = value
        return self


OURS = bridge.JAR.as_uri()


def test_where_jars_may_be_set_already(no_jvm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert esk.configure(Options())._options == {"spark.jars": OURS}
    assert esk.configure(esk.configure(Options()))._options == {"spark.jars": OURS}
    assert esk.configure(Options(spark_jars="a.jar, b.jar"))._options == {"spark.jars": f"a.jar,b.jar,{OURS}"}
    (no_jvm / "spark-defaults.conf").write_text("spark.jars=defaults.jar\n")
    assert esk.configure(Options())._options == {"spark.jars": f"defaults.jar,{OURS}"}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.jars=submit.jar pyspark-shell")
    assert esk.configure(Options())._options == {"spark.jars": f"submit.jar,{OURS}"}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars 'x y.jar,z.jar' --conf spark.jars=submit.jar pyspark-shell")
    assert esk.configure(Options())._options == {"spark.jars": f"x y.jar,z.jar,{OURS}"}
    (no_jvm / "own.conf").write_text("spark.jars own.jar")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {no_jvm}/own.conf pyspark-shell")
    assert esk.configure(Options())._options == {"spark.jars": f"own.jar,{OURS}"}


def test_configure_for_spark_connect(no_jvm: Path) -> None:
    assert esk.configure(Options(spark_remote="local[2]"))._options == {"spark.remote": "local[2]"}
    with pytest.raises(EsSkippingError, match="runs on a remote server"):
        esk.configure(Options(spark_remote="sc://elsewhere"))


def test_properties_as_java_reads_them() -> None:
    text = "# c\n! c\n\n a = 1 \nb:2\nc 3\nd\ne=x\\\n   y\nf\\ g=h\\tz\\u00e9\nk==v\nl=c:\\\\dir\n"
    assert launch_conf.read_properties(text) == {
        "a": "1", "b": "2", "c": "3", "d": "", "e": "xy", "f g": "h\tzé", "k": "=v", "l": "c:\\dir"
    }  # fmt: skip
