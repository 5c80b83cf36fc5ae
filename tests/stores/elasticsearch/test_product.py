"""What is not Elasticsearch is named, and its replies are never taken for Elasticsearch's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import es_skipping as esk
from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.stores.base import MetadataStore
from tests.elasticsearch_node import start_node
from tests.server_distributions import Distribution
from tests.stores.contract import MINMAX, dataset_definition
from tests.stores.elasticsearch.conftest import make_store

CALLS: dict[str, Callable[[MetadataStore], Any]] = {
    "dataset": lambda store: store.dataset("events"),
    "datasets": lambda store: list(store.datasets()),
    "objects": lambda store: list(store.objects("events")),
    "change": lambda store: store.change(dataset_definition(MINMAX), fresh=True).__enter__(),
    "drop": lambda store: store.drop("events"),
    "checks": lambda store: list(store.checks()),
}


@pytest.mark.parametrize("version", ["2.19.1", pytest.param("3.1.0", marks=pytest.mark.long)])
def test_opensearch_is_refused_by_name(version: str, tmp_path: Path) -> None:
    """On a real server: a build says what it found, and a query reads all files."""
    node = start_node(distribution=Distribution("opensearch", version))
    try:
        named = f"{node.url} is OpenSearch {version}; es_skipping speaks to Elasticsearch 8 and 9"
        for name, call in CALLS.items():
            with pytest.raises(StoreError) as raised:
                call(make_store(node.url, "es-skipping"))  # each on a client that has not seen a reply yet
            assert named in str(raised.value), name
        for number in (1, 2):
            pq.write_table(pa.table({"x": [number]}), tmp_path / f"{number}.parquet")
        found = esk.files(tmp_path, "x = 1", store=node.url)
        assert len(found) == 2 and found.report.failed and named in str(found.report.reason)
    finally:
        node.stop()


@contextmanager
def answering(status: int, body: Any, root: Any) -> Iterator[str]:
    """A loopback server without the header of Elasticsearch: its URL. `root` is its reply to ``GET /``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = self.path == "/" and root is not None
            text = json.dumps(root if asked else body).encode()
            self.send_response(200 if asked else status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [200, 400, 404, 405, 406])
@pytest.mark.parametrize(
    ("root", "named"),
    [
        (
            {"version": {"distribution": "opensearch", "number": "1.3.20"}},
            "is OpenSearch 1.3.20; es_skipping speaks to",
        ),
        ({"version": {"number": "7.10.2"}}, "calls itself version 7.10.2; es_skipping speaks to Elasticsearch 8 and 9"),
        (["hello"], "lacks the header X-Elastic-Product"),
        (None, "lacks the header X-Elastic-Product"),
    ],
)
def test_a_reply_without_the_header_is_no_answer(status: int, root: Any, named: str) -> None:
    """Above all a 404: it would mean that the dataset has no index."""
    with answering(status, {"error": "none", "found": False}, root) as url:
        for name, call in CALLS.items():
            with pytest.raises(StoreError) as raised:
                call(make_store(url, "es-skipping"))
            assert named in str(raised.value), name


@pytest.mark.parametrize(("status", "said"), [(401, "does not accept the credentials"), (503, "answered 503")])
def test_a_proxy_that_says_no_or_later_is_no_product(status: int, said: str) -> None:
    with answering(status, {"error": "none"}, None) as url, pytest.raises(StoreError, match=said) as raised:
        make_store(url, "es-skipping").dataset("events")
    assert isinstance(raised.value, StoreUnavailable) == (status == 503)
