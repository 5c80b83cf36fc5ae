"""Stores on HDFS and on S3: a statement's process writes them, the helper reads them, both through the JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.applications import Application, Lake
from tests.clients.test_applications import ONE, one
from tests.clients.test_statements import BUILT, create, failure
from tests.hdfs_cluster import Cluster
from tests.s3_server import Server


@pytest.fixture(scope="module")
def fresh(indexed: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The dataset, and a store that stays empty: each session names a store of its own."""
    folder = tmp_path_factory.mktemp("stores")
    return Lake(indexed[0], (folder / "nothing").as_uri(), folder)


@pytest.fixture(scope="module")
def application(fresh: Lake, s3: Server) -> Iterator[Application]:
    fresh.settings |= s3.launch_conf  # Hadoop's client for S3, and where the server is
    with Application(fresh) as running:
        yield running


@pytest.mark.every(2)
@pytest.mark.parametrize("place", ["hdfs", "s3"])
def test_statements_and_look_ups(
    fresh: Lake, application: Application, place: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(place)
    url = server.folder("store") if isinstance(server, Cluster) else f"{server.bucket('store')}/es"
    table = f"parquet.`{fresh.data}`"
    application.run(f"SET spark.es_skipping.store.url={url}", place)
    assert application.run(one(fresh), place) == (20, ONE)
    assert application.run(create(fresh), place) == BUILT
    assert application.run(one(fresh), place) == (1, ONE)
    kept = f"SELECT count(*), count_if(NOT skipped) FROM skipping_files('{table}', 'id = 5')"
    assert application.run(kept, place) == (-1, ["20|1"])
    assert application.run(one(fresh)) == (20, ONE)  # in the session of another store
    application.run(f"DROP SKIPPING INDEX ON {table}", place)
    assert application.run(one(fresh), place) == (20, ONE)
    assert application.warnings() == []


def test_a_store_without_access(fresh: Lake, application: Application, s3: Server) -> None:
    bucket = s3.bucket("closed")
    s3.deny(bucket, ["GET", "HEAD", "PUT", "POST", "DELETE"])
    try:
        application.run(f"SET spark.es_skipping.store.url={bucket}/es", "closed")
        for _ in range(2):
            assert application.run(one(fresh), "closed") == (20, ONE)
        (warning,) = application.warnings()
        assert f"{bucket}/es" in warning
        assert "CREATE SKIPPING INDEX: " in failure(application, create(fresh), "closed")
    finally:
        s3.allow()
