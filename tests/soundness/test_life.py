"""The life of a dataset through Spark: whatever happens to its files, schema and indexes, queries return the same rows.

``ES_SKIPPING_LIFE`` sets how many steps are made (a record took two thousand), ``ES_SKIPPING_SEED`` which. After each
step the same queries run in two sessions that skip and in one that does not, now and then while a refresh is running.
One session remembers conditions. `esk.read` returns no row that is not there, and after a refresh all of them.
With fifty steps or more, a refresh is now and then that of another process, with a Spark of its own, or that process is
killed while it refreshes. On HDFS and S3 data and metadata lie together, and now and then nobody may write.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError
from tests.hdfs_cluster import Cluster
from tests.s3_server import Server
from tests.soundness.folders import Folder, HadoopFolder, LocalFolder, S3Folder

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "4"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "5"))
_OPTIONS = {"recursiveFileLookup": "true"}
"""Without it, Spark reads no file of a folder that is not named as a partition."""
START_MS = 1_700_000_000_000

_ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}
_INDEXES = (
    esk.MinMax("x"), esk.ValueList("x"), esk.MinMax("y"), esk.ValueList("w"), esk.Prefix("w", length=2), esk.MinMax("n.a"),
    esk.MinMax("x + 1"), esk.ValueList("n.b"), esk.Suffix("w", length=1), esk.MinMax("z"),
)  # fmt: skip


class _Dataset:
    """Files, schema and indexes, and what happens to them."""

    def __init__(self, folder: Folder, rng: random.Random, format: str, odd_folders: Sequence[str] = ()) -> None:
        self.folder, self.format, self.odd_folders = folder, format, odd_folders
        self._rng = rng
        self._clock = START_MS
        self.columns = {"id": "BIGINT", "x": "INT", "y": "INT", "w": "STRING"}
        self.fields = {"a": "INT"}
        self._made = 0
        for _ in range(3):
            self.append()

    @property
    def schema(self) -> str:
        nested = ", ".join(f"{name}: {type}" for name, type in self.fields.items())
        return ", ".join([*(f"{name} {type}" for name, type in self.columns.items()), f"n STRUCT<{nested}>"])

    def files(self) -> list[str]:
        return self.folder.names(f".{self.format}")

    def _held(self, name: str) -> pa.Table:
        data = pa.BufferReader(self.folder.read(name))
        return orc.read_table(data) if self.format == "orc" else pq.ParquetFile(data).read()

    # --- files

    def _values(self, type: str, count: int) -> list[Any]:
        low = self._rng.randint(0, 80)
        number = [self._rng.choice((None, *range(low, low + 6))) for _ in range(count)]
        if type == "STRING":
            return [None if n is None else f"w{n:02}" for n in number]
        if type == "DOUBLE":
            return [None if n is None else self._rng.choice((float(n), float("nan"), -0.0)) for n in number]
        return number

    def _table(self, count: int) -> pa.Table:
        data = {n: pa.array(self._values(t, count), _ARROW[t]) for n, t in self.columns.items() if n != "id"}
        inner = [pa.array(self._values(t, count), _ARROW[t]) for t in self.fields.values()]
        parents = pa.array([self._rng.random() < 0.2 for _ in range(count)], pa.bool_())
        data["n"] = pa.StructArray.from_arrays(inner, list(self.fields), mask=parents)
        self._made += 1
        return pa.table({"id": pa.array(range(self._made * 100, self._made * 100 + count), pa.int64()), **data})

    def _write(self, name: str, table: pa.Table, tick: int = 1) -> str:
        """At a time stamp of its own."""
        self._clock += tick
        data = pa.BufferOutputStream()
        if self.format == "orc":
            orc.write_table(table, data)
        else:
            pq.write_table(table, data, compression="none", use_dictionary=False, write_statistics=True)
        self.folder.write(name, data.getvalue().to_pybytes(), self._clock)
        return name

    def append(self) -> str:
        name = self._rng.choice(("", "deep/", "a b/", *self.odd_folders)) + f"part-{self._made:05}.{self.format}"
        return self._write(name, self._table(self._rng.choice((1, 4, 12))), self._rng.choice((1, 1000)))

    def _some(self) -> str | None:
        files = self.files()
        return self._rng.choice(files) if files else None

    def overwrite(self) -> str:
        """In place: the same number of rows, which for fixed widths is the same length, within the same second."""
        name = self._some()
        if name is None:
            return "nothing"
        return self._write(name, self._table(self._held(name).num_rows), self._rng.choice((1, 7, 1000)))

    def delete(self) -> str:
        name = self._some()
        if name is None:
            return "nothing"
        self.folder.delete(name)
        return name

    def rename(self) -> str:
        name, self._made = self._some(), self._made + 1
        if name is None:
            return "nothing"
        to = f"{name.rpartition('/')[0]}/moved-{self._made:05}.{self.format}".removeprefix("/")
        self.folder.rename(name, to)
        return to

    def swap(self) -> str:
        """Two files change their names with each other."""
        files = self.files()
        if len(files) < 2:
            return "nothing"
        one, other = self._rng.sample(files, 2)
        self.folder.rename(one, "_aside")
        self.folder.rename(other, one)
        self.folder.rename("_aside", other)
        return f"{one} and {other}"

    def compact(self) -> str:
        files = self.files()[:2]
        held = [self._held(file) for file in files]
        if len(files) < 2 or held[0].schema != held[1].schema:
            return "nothing"
        table = pa.concat_tables(held)
        for file in files:
            self.folder.delete(file)
        self._made += 1
        return self._write(f"compact-{self._made:05}.{self.format}", table)

    # --- schema

    def add_column(self) -> str:
        self.columns["z"] = self._rng.choice(("INT", "STRING", "DOUBLE"))
        self._rewrite_where({"z"})
        return self.columns["z"]

    def drop_column(self) -> str:
        return str(self.columns.pop("z", "nothing"))

    def widen(self) -> str:
        """``y`` becomes BIGINT; files that hold it as INT stay as they are, no other type can be read as it."""
        before, self.columns["y"] = self.columns["y"], "BIGINT"
        if before != "INT":
            self._rewrite_where({"y"})
        return f"y was {before}"

    def retype(self) -> str:
        """``y`` becomes another type; files that hold it otherwise are written anew, under the same names."""
        self.columns["y"] = self._rng.choice(("INT", "STRING", "DOUBLE"))
        self._rewrite_where({"y"})
        return self.columns["y"]

    def reorder(self) -> str:
        names = list(self.columns)
        self._rng.shuffle(names)
        self.columns = {name: self.columns[name] for name in names}
        return str(names)

    def rename_column(self) -> str:
        """``w`` is now what ``v`` was, and the other way round, if both are there."""
        if "v" not in self.columns:
            self.columns["v"] = "STRING"
            return "v is new"
        for file in self.files():
            table = self._held(file)
            swapped = {"v": "w", "w": "v"}
            self._write(file, table.rename_columns([swapped.get(name, name) for name in table.column_names]))
        return "v and w"

    def nest(self) -> str:
        self.fields = {"b": "STRING", **self.fields} if "b" not in self.fields else {"a": "INT"}
        return str(self.fields)

    def _rewrite_where(self, names: set[str]) -> None:
        for file in self.files():
            held = self._held(file).schema
            if any(name in held.names and held.field(name).type != _ARROW[self.columns[name]] for name in names):
                self._write(file, self._table(self._held(file).num_rows))


def _read(spark: SparkSession, data: _Dataset) -> DataFrame:
    return spark.read.format(data.format).schema(data.schema).options(**_OPTIONS).load(data.folder.url)


def _predicates(rng: random.Random, data: _Dataset) -> list[str]:
    low = rng.randint(-5, 90)
    number = "'w%02d'" if data.columns["y"] == "STRING" else "%d"
    known = [
        f"x = {low}", f"x BETWEEN {low} AND {low + 4}", f"x <> {low}", "x IS NULL", f"x + 1 > {low + 80}", f"NOT (x < {low})",
        f"w = 'w{low:02}'", f"w LIKE 'w{low // 10}%'", "w NOT LIKE 'w1%'", f"w LIKE '%{low % 10}'", "w IS NULL OR x = 3",
        f"n.a < {low}", f"n.a = {low} OR n IS NULL", "n IS NOT NULL AND n.a IS NULL", f"y = {number % low}", f"y > {number % low}",
    ]  # fmt: skip
    if "z" in data.columns:
        known += ["z IS NULL", "z IS NOT NULL", "z = z"]
    if "v" in data.columns:
        known += [f"v = 'w{low:02}'", "v = w"]
    if "b" in data.fields:
        known += [f"n.b = 'w{low:02}'"]
    return rng.sample(known, 2)


def _rows(spark: SparkSession, data: _Dataset, predicate: str) -> list[str]:
    return sorted(map(repr, _read(spark, data).where(predicate).collect()))


@dataclass(frozen=True)
class _Place:
    """Where data lies, where the Parquet store may lie, and how writing is forbidden and allowed again."""

    folder: Folder
    store: str
    conf: Mapping[str, str] = field(default_factory=dict)
    """For the builder of another process's session."""
    forbid: Callable[[], str] | None = None
    allow: Callable[[], None] | None = None


def _place(name: str, request: pytest.FixtureRequest, session: SparkSession, rng: random.Random) -> _Place:
    if name == "hdfs":
        hdfs: Cluster = request.getfixturevalue("hdfs")
        root = hdfs.folder("life")
        store = f"{root}/store"

        def forbid() -> str:
            if rng.random() < 0.5:
                hdfs.quota(root, names=1)
                return "quota"
            hdfs.do("chmod", store, "000")
            return "permission"

        def allow() -> None:
            hdfs.quota(root)
            hdfs.do("chmod", store, "755")

        return _Place(HadoopFolder(session, f"{root}/da ta"), store, forbid=forbid, allow=allow)
    if name == "s3":
        s3: Server = request.getfixturevalue("s3")
        s3.attach(session)
        bucket = s3.bucket("life")

        def deny() -> str:
            methods = ("PUT", "POST", "DELETE") if rng.random() < 0.5 else ("PUT", "POST", "DELETE", "GET", "HEAD")
            s3.deny(f"{bucket}/store", methods)
            return ", ".join(methods)

        return _Place(S3Folder(s3.files(), f"{bucket}/da ta"), f"{bucket}/store", s3.launch_conf, deny, s3.allow)
    local: Path = request.getfixturevalue("tmp_path")
    return _Place(LocalFolder(local / "data"), (local / "store").as_uri())


@pytest.mark.parametrize(
    ("store", "format", "where"),
    [
        pytest.param("parquet", "parquet", "local", id="parquet-parquet"),
        pytest.param("elasticsearch", "parquet", "local", id="elasticsearch-parquet"),
        pytest.param("parquet", "orc", "local", id="parquet-orc"),
        pytest.param("parquet", "parquet", "hdfs", id="hdfs"),
        pytest.param("parquet", "parquet", "s3", id="s3"),
    ],
)
def test_the_life_of_a_dataset(
    request: pytest.FixtureRequest, base: SparkSession, store: str, format: str, where: str
) -> None:
    rng = random.Random(SEED)
    place = _place(where, request, base.newSession(), rng)
    url = place.store if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    off, *ons = (base.newSession() for _ in range(3))
    for session in (off, *ons):
        session.conf.set("spark.sql.ansi.enabled", "false")
    for session in ons:
        session.conf.set("spark.es_skipping.store.url", url)
        session.conf.set("spark.es_skipping.store.timeout", "60s")
        session.conf.set("spark.es_skipping.query.budget", "60s")
        session.conf.set("spark.es_skipping.strict", "true")
        esk.enable(session)
    ons[0].conf.set("spark.es_skipping.remember", "true")
    if STEPS >= 50:  # its refreshes take the schema from a file, so they build anew what others built
        ons[1].conf.set("spark.es_skipping.autoRefresh", "true")
        ons[1].conf.set("spark.es_skipping.autoRefresh.interval", "5s")
        esk.enable(ons[1])
    data = _Dataset(place.folder, rng, format, () if where == "local" else ("ü%20+,#&/",))

    def dataset() -> esk.Dataset:
        return esk.Dataset(rng.choice(ons), data.folder.url, format=format, schema=data.schema, options=_OPTIONS)

    def refresh() -> str:
        return str(dataset().refresh())

    def add_index() -> str:
        return str(dataset().ensure_indexes(*rng.sample(_INDEXES, 2)))

    def drop_index() -> str:
        dataset().drop_indexes(rng.choice(_INDEXES))
        return ""

    def rebuild() -> str:
        dataset().drop_indexes(all=True)
        return str(dataset().create_indexes(*rng.sample(_INDEXES[:6], 3)))

    def refresh_forbidden() -> str:
        assert place.forbid is not None and place.allow is not None
        how = place.forbid()
        try:
            return f"{how}: {dataset().refresh()}"
        finally:
            place.allow()

    actions: list[tuple[int, Callable[[], str]]] = [
        (4, data.append), (5, data.overwrite), (2, data.delete), (2, data.rename), (2, data.swap), (1, data.compact), (1, data.add_column),
        (1, data.drop_column), (1, data.widen), (1, data.retype), (1, data.reorder), (1, data.rename_column), (1, data.nest),
        (9, refresh), (3, add_index), (1, drop_index), (1, rebuild),
    ]  # fmt: skip
    dataset().create_indexes(*_INDEXES[:5])
    another = contextlib.ExitStack()
    request.addfinalizer(another.close)
    if place.forbid is not None:
        actions += [(2, refresh_forbidden)]
    if STEPS >= 50:
        other = another.enter_context(contextlib.closing(_Elsewhere(url, data, place.conf)))

        def refresh_elsewhere() -> str:
            return other.refresh(data.schema)

        def refresh_killed() -> str:
            return other.killed(data.schema, rng.random() * 2)

        actions += [(6, refresh_elsewhere), (1, refresh_killed)]
    log: list[str] = []
    skipped = refused = queries = 0
    for step in range(STEPS):
        (action,) = rng.choices([one for _, one in actions], [weight for weight, _ in actions])
        try:
            log.append(f"{step} {action.__name__} {action()}")
        except EsSkippingError as error:  # a column that is gone, an index that is not there
            refused += 1
            log.append(f"{step} {action.__name__} refused: {error}")
        by = rng.choice([one for _, one in actions if one.__name__ in ("refresh", "refresh_elsewhere")])
        meanwhile = threading.Thread(target=_quietly, args=(by,)) if rng.random() < 0.15 else None
        if meanwhile is not None:
            log.append(f"{step} {by.__name__} meanwhile")
            meanwhile.start()
        for predicate in _predicates(rng, data)[: 2 if where == "local" else 1]:
            expected = _rows(off, data, predicate)
            for session in ons if where == "local" else rng.sample(ons, 1):
                with esk.observe(session) as report:
                    got = _rows(session, data, predicate)
                assert got == expected, f"seed {SEED}, {predicate} after\n" + "\n".join(log[-15:])
                skipped += sum(scan.objects_skipped for scan in report.scans)
                queries += 1
            session = rng.choice(ons)
            given = esk.Dataset(session, data.folder.url, format=format, schema=data.schema, options=_OPTIONS)
            got = sorted(map(repr, esk.read(session, given).where(predicate).collect()))
            said = f"esk.read, seed {SEED}, {predicate} after\n" + "\n".join(log[-15:])
            assert not Counter(got) - Counter(expected), said
            if action in (refresh, add_index, rebuild) and "refused" not in log[-1] and meanwhile is None:
                assert got == expected, said
        if meanwhile is not None:
            meanwhile.join()
    summary = f"{STEPS} steps ({refused} refused), {queries} queries, {skipped} objects skipped, {format} files, {where}, {store}, seed {SEED}"
    print(f"\n{summary}")  # noqa: T201 - for a record run, with -s
    assert skipped, "nothing was ever skipped"


_ELSEWHERE = """
import json, sys
from pyspark.sql import SparkSession
import es_skipping as esk
spark = SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
for key, value in json.loads(sys.argv[4]).items():
    spark = spark.config(key, value)
spark = spark.config("spark.es_skipping.store.url", sys.argv[1]).getOrCreate()
for schema in sys.stdin:
    try:
        options = {"recursiveFileLookup": "true"}
        dataset = esk.Dataset(spark, sys.argv[2], format=sys.argv[3], schema=schema.strip(), options=options)
        print(repr(dataset.refresh()), flush=True)
    except esk.EsSkippingError as error:
        print("refused", " ".join(str(error).split()), flush=True)
"""


class _Elsewhere:
    """Refreshes in another process, which is started when it is first needed, and again after it was killed."""

    def __init__(self, store: str, data: _Dataset, conf: Mapping[str, str]) -> None:
        self._arguments = [store, data.folder.url, data.format, json.dumps(dict(conf))]
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process

    def _begin(self, schema: str) -> subprocess.Popen[str]:
        process = self._process
        if process is None:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", _ELSEWHERE, *self._arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment,
                start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(f"{schema}\n")
        process.stdin.flush()
        return process

    def refresh(self, schema: str) -> str:
        """Given the schema of the read, what came of it."""
        process = self._begin(schema)
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        if not said:
            self._errors.seek(0)
            pytest.fail(f"the other process is gone: {self._errors.read()[-4_000:]}")
        return said

    def killed(self, schema: str, seconds: float) -> str:
        """A refresh whose process and JVM get SIGKILL after some seconds, or as soon as it is done."""
        self.refresh(schema)
        process = self._begin(schema)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)
        self.close()
        return f"after {seconds:.1f} s"

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and process.stdout is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(60)
            process.stdout.close()


def _quietly(action: Callable[[], str]) -> None:
    with contextlib.suppress(EsSkippingError):
        action()
