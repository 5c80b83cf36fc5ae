"""The life of a dataset through Spark: whatever happens to its files, schema and indexes, queries return the same rows.

``ES_SKIPPING_LIFE`` sets how many steps are made (a record took two thousand), ``ES_SKIPPING_SEED`` which. After each
step the same queries run in two sessions that skip and in one that does not, now and then while a refresh is running.
With a hundred steps or more, a refresh is now and then that of another process, with a Spark of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.errors import EsSkippingError

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "4"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "5"))
START_MS = 1_700_000_000_000

_ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}
_INDEXES = (
    esk.MinMax("x"), esk.ValueList("x"), esk.MinMax("y"), esk.ValueList("w"), esk.Prefix("w", length=2), esk.MinMax("n.a"),
    esk.MinMax("x + 1"), esk.ValueList("n.b"), esk.Suffix("w", length=1), esk.MinMax("z"),
)  # fmt: skip


class _Dataset:
    """Files, schema and indexes, and what happens to them."""

    def __init__(self, folder: Path, rng: random.Random, format: str) -> None:
        self.folder, self.format = folder, format
        self._rng = rng
        self._clock = START_MS
        self.columns = {"id": "BIGINT", "x": "INT", "y": "INT", "w": "STRING"}
        self.fields = {"a": "INT"}
        self._made = 0
        folder.mkdir()
        for _ in range(3):
            self.append()

    @property
    def schema(self) -> str:
        nested = ", ".join(f"{name}: {type}" for name, type in self.fields.items())
        return ", ".join([*(f"{name} {type}" for name, type in self.columns.items()), f"n STRUCT<{nested}>"])

    def files(self) -> list[Path]:
        return sorted(self.folder.rglob(f"*.{self.format}"))

    def _held(self, path: Path) -> pa.Table:
        return orc.read_table(str(path)) if self.format == "orc" else pq.ParquetFile(path).read()

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

    def _write(self, path: Path, table: pa.Table, tick: int = 1) -> str:
        """Written as Spark's writers do, beside the path and then moved there; at a time stamp of its own."""
        self._clock += tick
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f"_{path.name}.tmp")
        if self.format == "orc":
            orc.write_table(table, str(beside))
        else:
            pq.write_table(table, beside, compression="none", use_dictionary=False, write_statistics=True)
        os.utime(beside, ns=(self._clock * 1_000_000, self._clock * 1_000_000))
        beside.rename(path)
        return path.name

    def append(self) -> str:
        name = self._rng.choice(("", "deep/", "a b/")) + f"part-{self._made:05}.{self.format}"
        return self._write(self.folder / name, self._table(self._rng.choice((1, 4, 12))), self._rng.choice((1, 1000)))

    def _some(self) -> Path | None:
        files = self.files()
        return self._rng.choice(files) if files else None

    def overwrite(self) -> str:
        """In place: the same number of rows, which for fixed widths is the same length, within the same second."""
        path = self._some()
        if path is None:
            return "nothing"
        before = path.stat().st_size
        self._write(path, self._table(self._held(path).num_rows), self._rng.choice((1, 7, 1000)))
        return f"{path.name}, {before} bytes became {path.stat().st_size}"

    def delete(self) -> str:
        path = self._some()
        if path is None:
            return "nothing"
        path.unlink()
        return path.name

    def rename(self) -> str:
        path, self._made = self._some(), self._made + 1
        return "nothing" if path is None else path.rename(path.with_name(f"moved-{self._made:05}.{self.format}")).name

    def swap(self) -> str:
        """Two files change their names with each other."""
        files = self.files()
        if len(files) < 2:
            return "nothing"
        one, other = self._rng.sample(files, 2)
        aside = one.with_name("_aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)
        return f"{one.name} and {other.name}"

    def compact(self) -> str:
        files = self.files()[:2]
        held = [self._held(file) for file in files]
        if len(files) < 2 or held[0].schema != held[1].schema:
            return "nothing"
        table = pa.concat_tables(held)
        for file in files:
            file.unlink()
        self._made += 1
        return self._write(self.folder / f"compact-{self._made:05}.{self.format}", table)

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
    return spark.read.format(data.format).schema(data.schema).load(str(data.folder))


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


@pytest.mark.parametrize(
    ("store", "format"), [("parquet", "parquet"), ("elasticsearch", "parquet"), ("parquet", "orc")]
)
def test_the_life_of_a_dataset(
    request: pytest.FixtureRequest, base: SparkSession, tmp_path: Path, store: str, format: str
) -> None:
    rng = random.Random(SEED)
    url = (tmp_path / "store").as_uri() if store == "parquet" else request.getfixturevalue("elasticsearch_url")
    off, *ons = (base.newSession() for _ in range(3))
    for session in (off, *ons):
        session.conf.set("spark.sql.ansi.enabled", "false")
    for session in ons:
        session.conf.set("spark.es_skipping.store.url", url)
        session.conf.set("spark.es_skipping.store.timeout", "60s")
        session.conf.set("spark.es_skipping.query.budget", "60s")
        session.conf.set("spark.es_skipping.strict", "true")
        esk.enable(session)
    data = _Dataset(tmp_path / "data", rng, format)

    def dataset() -> esk.Dataset:
        return esk.Dataset(rng.choice(ons), str(data.folder), format=format, schema=data.schema)

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

    actions: list[tuple[int, Callable[[], str]]] = [
        (4, data.append), (5, data.overwrite), (2, data.delete), (2, data.rename), (2, data.swap), (1, data.compact), (1, data.add_column),
        (1, data.drop_column), (1, data.widen), (1, data.retype), (1, data.reorder), (1, data.rename_column), (1, data.nest),
        (9, refresh), (3, add_index), (1, drop_index), (1, rebuild),
    ]  # fmt: skip
    dataset().create_indexes(*_INDEXES[:5])
    another = contextlib.ExitStack()
    request.addfinalizer(another.close)
    if STEPS >= 100:
        refresh_of_another = another.enter_context(_elsewhere(url, data))

        def refresh_elsewhere() -> str:
            return refresh_of_another(data.schema)

        actions += [(3, refresh_elsewhere)]
    log: list[str] = []
    skipped = refused = queries = 0
    for step in range(STEPS):
        (action,) = rng.choices([one for _, one in actions], [weight for weight, _ in actions])
        try:
            log.append(f"{step} {action.__name__} {action()}")
        except EsSkippingError as error:  # a column that is gone, an index that is not there
            refused += 1
            log.append(f"{step} {action.__name__} refused: {error}")
        by = rng.choice([one for _, one in actions if one.__name__.startswith("refresh")])
        meanwhile = threading.Thread(target=_quietly, args=(by,)) if rng.random() < 0.15 else None
        if meanwhile is not None:
            log.append(f"{step} {by.__name__} meanwhile")
            meanwhile.start()
        for predicate in _predicates(rng, data):
            expected = _rows(off, data, predicate)
            for session in ons:
                with esk.observe(session) as report:
                    got = _rows(session, data, predicate)
                assert got == expected, f"seed {SEED}, {predicate} after\n" + "\n".join(log[-15:])
                skipped += sum(scan.objects_skipped for scan in report.scans)
                queries += 1
        if meanwhile is not None:
            meanwhile.join()
    summary = f"{STEPS} steps ({refused} refused), {queries} queries, {skipped} objects skipped, {format} files, {store}, seed {SEED}"
    print(f"\n{summary}")  # noqa: T201 - for a record run, with -s
    assert skipped, "nothing was ever skipped"


_ELSEWHERE = """
import sys
from pyspark.sql import SparkSession
import es_skipping as esk
spark = SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
spark = spark.config("spark.es_skipping.store.url", sys.argv[1]).getOrCreate()
for schema in sys.stdin:
    try:
        print(esk.Dataset(spark, sys.argv[2], format=sys.argv[3], schema=schema.strip()).refresh(), flush=True)
    except esk.EsSkippingError as error:
        print("refused", " ".join(str(error).split()), flush=True)
"""


@contextlib.contextmanager
def _elsewhere(store: str, data: _Dataset) -> Iterator[Callable[[str], str]]:
    """Refreshes in another process: given the schema of the read, it gives back what came of it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    other = subprocess.Popen(
        [sys.executable, "-c", _ELSEWHERE, store, str(data.folder), data.format],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    )  # fmt: skip
    assert other.stdin is not None and other.stdout is not None
    to, back = other.stdin, other.stdout

    def refresh(schema: str) -> str:
        to.write(f"{schema}\n")
        to.flush()
        said = back.readline().strip()
        assert said, "the other process is gone"
        return said

    try:
        yield refresh
    finally:
        to.close()
        other.wait(60)


def _quietly(action: Callable[[], str]) -> None:
    with contextlib.suppress(EsSkippingError):
        action()
