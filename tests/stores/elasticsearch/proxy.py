"""A proxy before a real node that changes what passes: how the tests make a server misbehave."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Exchange", "Proxy", "proxy"]


@dataclass
class Exchange:
    """One request and its reply, which a test changes in place; ``status`` set in `Proxy.before` answers alone, ``cut``
    ends the connection in the middle of the reply."""

    method: str
    path: str
    headers: dict[str, str]
    request: bytes
    status: int = 0
    reply: Any = None
    cut: bool = False

    @property
    def is_bulk(self) -> bool:
        return self.path.partition("?")[0].endswith("/_bulk")


@dataclass
class Proxy:
    """What a test hangs its faults on."""

    url: str = ""
    before: Callable[[Exchange], None] = lambda exchange: None
    after: Callable[[Exchange], None] = lambda exchange: None
    seen: list[Exchange] = field(default_factory=list)


@contextmanager
def proxy(target: str) -> Iterator[Proxy]:
    """A proxy in front of a node."""
    parts = urlsplit(target)
    made = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            exchange = Exchange(self.command, self.path, dict(self.headers.items()), body)
            made.seen.append(exchange)
            made.before(exchange)
            if not exchange.status:
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
                passed = {
                    name: value
                    for name, value in exchange.headers.items()
                    if name.lower() in ("content-type", "accept")
                }
                connection.request(self.command, self.path, body, passed)
                reply = connection.getresponse()
                text = reply.read()
                exchange.status = reply.status
                exchange.reply = json.loads(text) if text else None
                connection.close()
                made.after(exchange)
            data = exchange.reply if isinstance(exchange.reply, bytes) else json.dumps(exchange.reply).encode()
            self.send_response(exchange.status)
            self.send_header("content-type", "application/json")
            self.send_header("x-elastic-product", "Elasticsearch")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if exchange.cut else data)
            self.close_connection = self.close_connection or exchange.cut

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
