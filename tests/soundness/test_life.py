"""The life of a dataset through Spark: whatever happens to its files, schema and indexes, queries return the same rows.

``ES_SKIPPING_LIFE`` sets how many steps are made (a record took two thousand), ``ES_SKIPPING_SEED`` which. After each
step the same queries run in two sessions that skip and in one that does not, now and then while a refresh is running.
One session remembers conditions, and indexes what it writes; some of its writes fail, and some are not indexed.
`esk.read` returns no row that is not there, and after a refresh all of them.
With fifty steps or more, another process with a Spark of its own refreshes, queries and writes too. Both processes
refresh by themselves what their queries list. Now and then the other one is killed while it refreshes or writes.
On HDFS and S3 data and metadata lie together, and now and then nobody may write.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import es_skipping as esk
from es_skipping.build.dataset import Dataset
from es_skipping.errors import EsSkippingError
from tests.hdfs_cluster import Cluster
from tests.jvm import INTERPRETED
from tests.s3_server import Server
from tests.soundness.changing import Changing
from tests.soundness.elsewhere import Elsewhere
from tests.soundness.folders import Folder, HadoopFolder, LocalFolder, S3Folder

STEPS = int(os.environ.get("ES_SKIPPING_LIFE", "4"))
SEED = int(os.environ.get("ES_SKIPPING_SEED", "5"))
_OPTIONS = {"recursiveFileLookup": "true"}
"""Without it, Spark reads no file of a folder that is not named as a partition."""

_INDEXES = (
    esk.MinMax("x"), esk.ValueList("x"), esk.MinMax("y"), esk.ValueList("w"), esk.Prefix("w", length=2), esk.MinMax("n.a"),
    esk.MinMax("x + 1"), esk.ValueList("n.b"), esk.Suffix("w", length=1), esk.MinMax("z"),
)  # fmt: skip


def _read(spark: SparkSession, data: Changing) -> DataFrame:
    return spark.read.format(data.format).schema(data.schema).options(**_OPTIONS).load(data.folder.url)


def _predicates(rng: random.Random, data: Changing) -> list[str]:
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


def _rows(spark: SparkSession, data: Changing, predicate: str) -> list[str]:
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


@pytest.mark.every(3)
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
        for key, value in INTERPRETED.items():
            session.conf.set(key, value)
    for session in ons:
        session.conf.set("spark.es_skipping.store.url", url)
        session.conf.set("spark.es_skipping.store.timeout", "60s")
        session.conf.set("spark.es_skipping.query.budget", "60s")
        session.conf.set("spark.es_skipping.strict", "true")
        esk.enable(session)
    ons[0].conf.set("spark.es_skipping.remember", "true")
    ons[0].conf.set("spark.es_skipping.indexOnCommit", "true")
    if STEPS >= 50:  # its refreshes take the schema from a file, so they build anew what others built
        ons[1].conf.set("spark.es_skipping.autoRefresh", "true")
        ons[1].conf.set("spark.es_skipping.autoRefresh.interval", "5s")
        esk.enable(ons[1])
    data = Changing(place.folder, rng, format, () if where == "local" else ("ü%20+,#&/",))

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

    def target() -> tuple[str, str]:
        """The directory and the mode of a write through Spark."""
        below = rng.choice(("", "/deep", "/a b"))
        return data.folder.url + below, "overwrite" if below and rng.random() < 0.2 else "append"

    def commit() -> str:
        to, mode = target()
        how = rng.choice(("indexed", "indexed", "not indexed", "failed"))
        frame = ons[0].createDataFrame(data.rows()).coalesce(1)
        if how == "failed":
            mode, frame = "append", frame.selectExpr("*", "IF(id % 4 = 3, raise_error('failed'), 0) AS failed")
        crash = mock.patch.object(Dataset, "refresh", side_effect=OSError("the driver is gone"))
        try:
            with crash if how == "not indexed" else contextlib.nullcontext():
                frame.write.mode(mode).format(format).save(to)
        except PySparkException as error:
            if how != "failed":
                raise
            how = f"failed: {str(error).splitlines()[0][:60]}"
        data.folder.forget_checksums()
        return f"{mode} {to}: {how}"

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
        (9, refresh), (3, add_index), (1, drop_index), (1, rebuild), (5, commit),
    ]  # fmt: skip
    log: list[str] = []
    dataset().create_indexes(*_INDEXES[:5])
    another = contextlib.ExitStack()
    request.addfinalizer(another.close)
    if place.forbid is not None:
        actions += [(2, refresh_forbidden)]
    if STEPS >= 50:
        other = another.enter_context(contextlib.closing(Elsewhere(url, data, place.conf)))

        def refresh_elsewhere() -> str:
            return other.do("refresh", schema=data.schema)

        def refresh_killed() -> str:
            other.do("refresh", schema=data.schema)
            return other.killed(rng.random() * 2, "refresh", schema=data.schema)

        def written() -> dict[str, str]:
            to, mode = target()
            rows = request.getfixturevalue("tmp_path") / "rows.parquet"
            pq.write_table(data.rows(), rows)
            return {"rows": str(rows), "to": to, "mode": mode}

        def commit_elsewhere() -> str:
            said = other.do("write", **written())
            data.folder.forget_checksums()
            return said

        def commit_killed() -> str:
            other.do("refresh", schema=data.schema)
            said = other.killed(rng.random() * 2, "write", **written())
            data.folder.forget_checksums()
            return said

        def query_elsewhere() -> str:
            """It lists what its own session then refreshes in the background."""
            predicate, _ = _predicates(rng, data)
            said = other.do("query", schema=data.schema, predicate=predicate)
            assert said == str(len(_rows(off, data, predicate))), (
                f"seed {SEED}, {predicate} elsewhere after {log[-15:]}"
            )
            return predicate

        actions += [
            (6, refresh_elsewhere),
            (1, refresh_killed),
            (2, commit_elsewhere),
            (1, commit_killed),
            (3, query_elsewhere),
        ]
    done: Counter[str] = Counter()
    skipped = refused = queries = 0
    for step in range(STEPS):
        (action,) = rng.choices([one for _, one in actions], [weight for weight, _ in actions])
        action = commit if step == 1 else action  # few steps have one too
        done[action.__name__] += 1
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
    summary = f"{dict(done)}: {STEPS} steps ({refused} refused), {queries} queries, {skipped} objects skipped, {format} files, {where}, {store}, seed {SEED}"
    print(f"\n{summary}")  # noqa: T201 - for a record run, with -s
    assert skipped, "nothing was ever skipped"


def _quietly(action: Callable[[], str]) -> None:
    with contextlib.suppress(EsSkippingError):
        action()
