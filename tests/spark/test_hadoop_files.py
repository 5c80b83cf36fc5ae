"""The Parquet store on a real HDFS and a real S3 server: creation if absent, races, quotas, permissions, the dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from es_skipping.errors import StoreConflict, StoreError
from es_skipping.spark.hadoop_files import HadoopFiles
from es_skipping.stores.files import Files, ReplaceableFiles
from es_skipping.stores.parquet import claims, snapshots
from es_skipping.stores.parquet.files import ArrowFiles
from es_skipping.stores.parquet.store import ParquetStore
from tests.hdfs_cluster import Cluster
from tests.s3_server import Server, hadoop_version
from tests.stores.contract import (
    MINMAX,
    between,
    dataset_definition,
    entry_of,
    minmax,
    object_id,
    object_metadata,
    stored,
    write,
)

ONE = dataset_definition(MINMAX)
ROUNDS: Final = {"hdfs": 5, "s3a": 8, "s3a by claims": 8, "pyarrow s3": 8}
"""Of two writers, here; `tests/faults/test_lakes.py` has longer ones."""

HAS_CONDITIONAL_WRITES = tuple(map(int, hadoop_version().split("."))) >= (3, 4, 2)


@pytest.fixture
def s3a(spark: SparkSession, s3: Server) -> Iterator[str]:
    """The URL of a new folder."""
    with s3.attached(spark):
        yield f"{s3.bucket()}/a store"


Maker = Callable[[], Files]
"""Makes a client of its own of the same folder."""


@pytest.fixture(params=["hdfs", "s3a", "s3a by claims", "pyarrow s3"])
def maker(request: pytest.FixtureRequest, spark: SparkSession) -> Maker:
    if request.param == "hdfs":
        cluster: Cluster = request.getfixturevalue("hdfs")
        folder = f"{cluster.folder()}/a store"
        return lambda: HadoopFiles(spark.sparkContext, folder)
    if request.param == "pyarrow s3":
        server: Server = request.getfixturevalue("s3")
        bucket = server.bucket(scheme="s3").removeprefix("s3://")
        return lambda: ArrowFiles(server.files(), f"{bucket}/a store")
    url: str = request.getfixturevalue("s3a")

    def make() -> Files:
        files = HadoopFiles(spark.sparkContext, url)
        if request.param == "s3a by claims":
            files.__dict__["_way"] = "claim"  # as where the client or the server has no conditional writes
        return files

    return make


def store_of(maker: Maker, grace: float = 3600.0) -> ParquetStore:
    files = maker()
    return ParquetStore(repr(files), files, grace=grace)


def put(store: ParquetStore, n: int) -> None:
    write(store, ONE, [object_metadata(n, minmax=minmax(n, n))])


def test_what_is_written_is_read(maker: Maker) -> None:
    files = maker()
    assert files.list("") == files.list("d/e") == []
    files.write("d/e/f", b"0123456789")
    assert [files.read("d/e/f", *stretch) for stretch in ((), (3,), (3, 4), (8, 10))] == [
        b"0123456789",
        b"3456789",
        b"3456",
        b"89",
    ]
    assert files.list("d") == ["e"]
    files.delete("d/e/f")
    files.delete("d/e/f")
    assert files.list("d/e") == []
    with pytest.raises(FileNotFoundError):
        files.read("d/e/f")


def test_create_if_absent(maker: Maker) -> None:
    files = maker()
    assert files.create_if_absent("d/1", b"first")
    assert not maker().create_if_absent("d/1", b"second")
    assert files.read("d/1") == b"first"
    assert files.list("d") == ["1"], "nothing is left beside it"


@pytest.mark.parametrize("maker", ["hdfs", "s3a"], indirect=True)
def test_a_file_is_replaced(maker: Maker) -> None:
    files = maker()
    assert isinstance(files, HadoopFiles)
    assert isinstance(files, ReplaceableFiles)
    files.replace("d/1", b"first")
    files.replace("d/1", b"second")
    assert maker().read("d/1") == b"second"
    assert files.list("d") == ["1"], "nothing is left beside it"


def test_a_writer_that_dies_while_it_replaces_a_file(
    spark: SparkSession, hdfs: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDFS shows a file that is being written."""
    files = HadoopFiles(spark.sparkContext, hdfs.folder())
    files.write("1", b"first")

    def half(path: str, data: bytes, *, overwrite: bool) -> None:
        files._system.create(files._path(path), overwrite).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_put", half)
    with pytest.raises(KeyboardInterrupt):
        files.replace("1", b"second")
    assert files.read("1") == b"first"


def test_how_files_are_created(spark: SparkSession, hdfs: Cluster, s3: Server, s3a: str) -> None:
    assert HadoopFiles(spark.sparkContext, hdfs.folder())._way == "rename"
    files = HadoopFiles(spark.sparkContext, s3a)
    assert files._way == ("conditional" if HAS_CONDITIONAL_WRITES else "claim")
    assert files.list("") == [], "the probe is gone"


def test_a_server_that_ignores_the_condition_is_found_out(
    spark: SparkSession, s3a: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ignoring(self: HadoopFiles, path: str, data: bytes) -> bool:
        self.write(path, data)
        return True

    monkeypatch.setattr(HadoopFiles, "_put_conditionally", ignoring)
    assert HadoopFiles(spark.sparkContext, s3a)._way == "claim"


def test_a_view_of_another_file_system_is_seen_through(spark: SparkSession, hdfs: Cluster) -> None:
    target = hdfs.folder()
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.lake.link./meta", target)
    files = HadoopFiles(spark.sparkContext, "viewfs://lake/meta/store")
    assert files._way == "rename"
    assert files.create_if_absent("1", b"x")
    assert not files.create_if_absent("1", b"y")
    files.replace("1", b"z")
    assert files.read("1") == b"z"


def test_of_many_writers_one_creates(maker: Maker) -> None:
    clients = [maker() for _ in range(4)]
    for round in range(5):
        won: list[int] = []
        start = threading.Barrier(len(clients))

        def create(n: int, name: str = f"d/{round}", won: list[int] = won, start: threading.Barrier = start) -> None:
            start.wait()
            if clients[n].create_if_absent(name, str(n).encode()):
                won.append(n)

        together(create, len(clients))
        assert len(won) == 1
        assert clients[0].read(f"d/{round}") == str(won[0]).encode()


def together(work: Callable[[int], None], threads: int) -> None:
    """Run in threads, and raise what one of them raised."""
    failures: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for failure in failures:
        raise failure


def test_two_writers_at_once(maker: Maker, request: pytest.FixtureRequest) -> None:
    meet(maker, ROUNDS[request.node.callspec.params["maker"]])


def meet(maker: Maker, rounds: int) -> None:
    """Two writers publish at the same time: at least one wins, the other one the next time at the latest."""
    stores = [store_of(maker), store_of(maker)]
    put(stores[0], 0)
    met = 0
    for round in range(rounds):
        start, tries = threading.Barrier(2), [0, 0]

        def change(n: int, round: int = round, start: threading.Barrier = start, tries: list[int] = tries) -> None:
            while True:
                with stores[n].change(ONE) as pending:
                    pending.put([object_metadata(1 + 2 * round + n, minmax=minmax(0, 0))])
                    if not tries[n]:
                        start.wait()
                    tries[n] += 1
                    try:
                        pending.publish()
                    except StoreConflict:
                        continue
                    return

        together(change, 2)
        assert min(tries) == 1 and max(tries) <= 2
        met += max(tries) == 2
    assert set(stored(store_of(maker))) == {object_id(n) for n in range(2 * rounds + 1)}
    assert met > 0, "they never met"


# --- quotas and permissions -------------------------------------------------------------------------------------------


def hdfs_store(spark: SparkSession, folder: str) -> ParquetStore:
    return ParquetStore(folder, HadoopFiles(spark.sparkContext, folder))


@pytest.mark.parametrize("limit", ["names", "space"])
def test_a_quota_that_is_used_up(spark: SparkSession, hdfs: Cluster, limit: str) -> None:
    folder = hdfs.folder()
    store = hdfs_store(spark, folder)
    put(store, 1)
    entry = entry_of(store)
    with store.change(ONE) as change:
        change.put([object_metadata(2, minmax=minmax(2, 2))])
        change._flush()  # type: ignore[attr-defined]  # there is room for the segment, and none for the manifest
        names = 1 + 3 + 3  # the folder, three in it, two segments and a manifest
        if limit == "names":
            hdfs.quota(folder, names=names)
        else:
            hdfs.quota(folder, space=20_000)
        with pytest.raises(
            StoreError, match=r"000002.json.* failed for lack of space .*SQuotaExceededException: .*raise"
        ) as raised:
            change.publish()
        assert "An error occurred while calling" not in str(raised.value)
    assert not isinstance(raised.value, StoreConflict)
    for reader in (store, hdfs_store(spark, folder)):
        assert entry_of(reader) == entry
        assert reader.lookup(entry, between(7, 7)).skipped == 1
    assert HadoopFiles(spark.sparkContext, folder).list("events/manifests") == ["000000000001.json"]
    hdfs.quota(folder)
    put(store, 3)
    assert set(stored(hdfs_store(spark, folder))) == {object_id(1), object_id(3)}


def test_no_permission(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder()
    store = hdfs_store(spark, folder)
    put(store, 1)
    for path, mode in (("events/manifests", "555"), ("events/segments", "555"), ("events/manifests", "000")):
        hdfs.do("chmod", f"{folder}/{path}", mode)
        with pytest.raises(
            StoreError, match=r"is not permitted .*AccessControlException: Permission denied: user=.*: grant access"
        ):
            put(hdfs_store(spark, folder), 2)
        hdfs.do("chmod", f"{folder}/{path}", "777")
    put(store, 3)
    assert set(stored(hdfs_store(spark, folder))) == {object_id(1), object_id(3)}


def test_no_permission_on_s3(spark: SparkSession, s3: Server, s3a: str) -> None:
    store = ParquetStore(s3a, HadoopFiles(spark.sparkContext, s3a))
    put(store, 1)
    s3.deny(s3a)
    try:
        with pytest.raises(StoreError, match=r"is not permitted .*AccessDenied.*: grant access"):
            put(store, 2)
    finally:
        s3.allow()
    put(store, 3)
    assert set(stored(store)) == {object_id(1), object_id(3)}


def test_a_server_that_is_not_there(spark: SparkSession) -> None:
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("ipc.client.connect.max.retries", "0")
    try:
        with pytest.raises(
            StoreError, match=r"ConnectException: .*\(nothing listens at this address: check the address"
        ):
            hdfs_store(spark, "hdfs://localhost:1/x").datasets()
    finally:
        conf.unset("ipc.client.connect.max.retries")


# --- writers that died ------------------------------------------------------------------------------------------------


def test_a_manifest_that_its_writer_never_closed(
    spark: SparkSession, hdfs: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of an earlier version, which wrote it in its place: the file is open, empty, and its writer holds the lease."""
    monkeypatch.setattr(snapshots, "_UNFINISHED_SECONDS", 0.01)
    folder = hdfs.folder()
    store = hdfs_store(spark, folder)
    put(store, 1)
    entry = entry_of(store)
    hdfs.do("create", f"{folder}/events/manifests/000000000002.json")
    for reader in (store, hdfs_store(spark, folder)):
        assert entry_of(reader) == entry
        assert reader.lookup(entry, between(7, 7)).skipped == 1
    assert "000000000002.json is empty or cut off" in caplog.text
    put(store, 2)
    assert entry_of(store).snapshot.startswith("3-")
    assert set(stored(hdfs_store(spark, folder))) == {object_id(1), object_id(2)}
    assert HadoopFiles(spark.sparkContext, folder).list("events/manifests") == [
        "000000000001.json",
        "000000000003.json",
    ]


def test_who_meets_a_file_that_another_is_creating_has_lost(spark: SparkSession, hdfs: Cluster) -> None:
    folder = hdfs.folder()
    hdfs.do("create", f"{folder}/1")
    files = HadoopFiles(spark.sparkContext, folder)
    assert not files._put_exclusively("1", b"x"), "AlreadyBeingCreatedException, inside a RemoteException"
    assert not files._put_aside("1", b"x")
    assert files.list("") == ["1"]


def test_asides_of_dead_writers_are_cleaned_up(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_MIN_WAIT_SECONDS", 0.001)
    store = store_of(maker)
    put(store, 1)
    files = maker()
    for name in ("000000000002.json.abc.tmp", f"000000000002.json.{int(time.time() * 1000) - 700_000}.abc.claim"):
        files.write(f"events/manifests/{name}", b"")
    files.write("events/manifests/000000000009.json.abc.tmp", b"")
    put(store, 2)
    assert files.list("events/manifests") == [
        "000000000001.json",
        "000000000002.json",
        "000000000009.json.abc.tmp",
    ], "whose number is still to come may be at work"
