"""A real S3 server for the tests: moto's, from PyPI, in a process of its own; and Hadoop's S3 client for Spark.

Tests use the fixture `s3`; whichever asks first starts the one server that the whole test run shares, in a second. Its
buckets live in its memory. It ends with this process, however that ends: it reads its commands from a pipe.

A local Spark that runs reads ``s3a://`` after `Server.attach`; one that starts needs `Server.launch_conf` on its
builder.
The jars are Hadoop's client and the parts of Amazon's SDK that it needs, 12 MB of them, not the whole SDK (500 MB).
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pytest

from tests.maven import class_path, property_of

if TYPE_CHECKING:
    import pyarrow.fs
    from pyspark.sql import SparkSession

__all__ = ["Server", "hadoop_version", "s3", "s3a_jars", "shared_server", "start_server"]

KEY: Final = "tester"
PASSWORD: Final = "not-a-secret"
REGION: Final = "us-east-1"
_ROOT: Final = Path(__file__).resolve().parent.parent
_SDK: Final = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
_SDK_VERSIONS: Final = {"3.4.1": "2.29.52"}
"""For versions of Hadoop with whose own version of the SDK the parts cannot always be had one by one: a later one."""


@pytest.fixture(scope="session")
def s3() -> Server:
    """The server that the run shares."""
    return shared_server()


@dataclass
class Server:
    """A running server that this process started.

    Parameters
    ----------
    endpoint
        Such as ``http://127.0.0.1:40259``.
    process
        Its process; `stop` ends this one and no other.
    """

    endpoint: str
    process: subprocess.Popen[str]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _names: Iterator[int] = field(default_factory=itertools.count)

    def bucket(self, name: str = "bucket", scheme: str = "s3a") -> str:
        """The URL of a new bucket."""
        bucket = f"{name}-{next(self._names)}"
        self.files().create_dir(bucket)
        return f"{scheme}://{bucket}"

    def files(self) -> pyarrow.fs.S3FileSystem:
        """The server's files by pyarrow; paths begin with the bucket."""
        import pyarrow.fs

        return pyarrow.fs.S3FileSystem(
            access_key=KEY,
            secret_key=PASSWORD,
            endpoint_override=self.endpoint,
            region=REGION,
            allow_bucket_creation=True,
            allow_bucket_deletion=True,
        )

    def client(self) -> Any:
        """The server by Amazon's own client for Python: for what pyarrow cannot say, such as If-None-Match."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=PASSWORD,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables by which pyarrow and Amazon's clients find this server for ``s3://`` without more."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": PASSWORD,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def session_conf(self) -> dict[str, str]:
        """What ``s3a://`` needs to know: for ``spark.conf.set`` too, before the first look at a bucket."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.access.key": KEY,
            "fs.s3a.secret.key": PASSWORD,
            "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.attempts.maximum": "2",
            "fs.s3a.retry.limit": "2",
            "fs.s3a.retry.interval": "100ms",
            "fs.s3a.change.detection.version.required": "false",
            # a class that executors have from the start, unlike S3A's own
            "mapreduce.outputcommitter.factory.scheme.s3a": (
                "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
            ),
        }

    @property
    def launch_conf(self) -> dict[str, str]:
        """For the builder of the session with which a JVM starts: the jars, and `session_conf`."""
        jars = os.pathsep.join(map(str, s3a_jars(hadoop_version())))
        hadoop = {f"spark.hadoop.{key}": value for key, value in self.session_conf.items()}
        return {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars, **hadoop}

    @contextmanager
    def attached(self, spark: SparkSession) -> Iterator[None]:
        """The same as `attach`, with `session_conf` in the configuration of all sessions meanwhile."""
        self.attach(spark)
        conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in self.session_conf.items():
            conf.set(key, value)
        yield
        for key in self.session_conf:
            conf.unset(key)

    def attach(self, spark: SparkSession) -> None:
        """Let a running local Spark read this server: the jars join its class loader, `session_conf` what it knows.

        Hadoop remembers for each class loader which classes it did not find, and an earlier test may have named an
        ``s3a://`` URL. So its configuration gets a new loader.
        """
        jvm: Any = spark.sparkContext._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        there = {url.toString() for url in loader.getURLs()}
        for jar in s3a_jars(hadoop_version()):
            url = jvm.java.net.URL(f"file:{jar}")
            if url.toString() not in there:
                loader.addURL(url)
        hadoop = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(spark._jsparkSession.sparkContext())
        none = spark.sparkContext._gateway.new_array(jvm.java.net.URL, 0)
        hadoop.hadoopConfiguration().setClassLoader(jvm.java.net.URLClassLoader(none, loader))
        for key, value in self.session_conf.items():
            spark.conf.set(key, value)
            hadoop.hadoopConfiguration().set(key, value)

    def deny(self, url: str, methods: Iterable[str] = ("PUT", "POST", "DELETE")) -> None:
        """Answer "access denied" to these methods below a URL, until `allow`."""
        split = urlsplit(url)
        self._do("deny", f"/{split.netloc}{unquote(split.path)}", *methods)

    def allow(self) -> None:
        """Lift what `deny` forbade."""
        self._do("allow", "-")

    def _do(self, *words: str) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        with self._lock:
            self.process.stdin.write("\t".join(words) + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "ok\n", "the S3 server of the tests has ended"

    def stop(self) -> None:
        """End the server. A second call does nothing."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()


@functools.cache
def shared_server() -> Server:
    """The shared server; starts it on the first call, stops it when the process ends."""
    return start_server()


def start_server() -> Server:
    """Start a server of its own, and wait until it listens."""
    missing = [name for name in ("moto", "flask", "flask_cors", "py_partiql_parser") if find_spec(name) is None]
    if missing:
        text = f"the tests' S3 server needs {', '.join(missing)}: pip install -e '.[test]'"
        pytest.fail(text, pytrace=False)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MOTO_", "S3_"))}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.s3_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        cwd=_ROOT,
        env={**environment, "PYTHONPATH": str(_ROOT)},
    )
    server = Server("", process)
    atexit.register(server.stop)
    assert process.stdout is not None
    first = process.stdout.readline()
    if not first.startswith("ok "):
        server.stop()
        text = f"the tests' S3 server did not start; see why: {sys.executable} -m tests.s3_server"
        pytest.fail(text, pytrace=False)
    server.endpoint = first.removeprefix("ok ").strip()
    return server


# --- Spark's side -----------------------------------------------------------------------------------------------------


def hadoop_version() -> str:
    """Hadoop's version in the importable PySpark."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    (jar,) = (Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def s3a_jars(hadoop: str) -> list[Path]:
    """What Spark lacks to read ``s3a://``."""
    own = property_of(f"org.apache.hadoop:hadoop-project:{hadoop}", "aws-java-sdk-v2.version")
    sdk = _SDK_VERSIONS.get(hadoop, own)
    return class_path(
        [*(f"software.amazon.awssdk:{name}:{sdk}" for name in _SDK), f"org.apache.hadoop:hadoop-aws:{hadoop}"],
        without=["software.amazon.awssdk:bundle", "io.netty:*", "org.slf4j:*"],  # Spark brings the last two
    )


# --- the server's side ------------------------------------------------------------------------------------------------


class _Gate:
    """Stands before the server: forbids what it is told to, and makes "create if absent" one step, as Amazon's is.

    The server looks whether an object exists and then makes it, in as many threads as there are requests; two of them
    could both find nothing.
    """

    def __init__(self, served: Callable[..., Iterable[bytes]]) -> None:
        self.served = served
        self.denied: list[tuple[str, frozenset[str]]] = []
        self.creating = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path, method = (
            environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace"),
            environ["REQUEST_METHOD"],
        )
        if any(path.startswith(prefix) and method in methods for prefix, methods in self.denied):
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
            return [body]
        if method in ("PUT", "POST", "DELETE"):
            with self.creating:
                return list(self.served(environ, start))
        return self.served(environ, start)


def _serve() -> None:
    import logging

    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    gate = _Gate(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, gate, threaded=True, request_handler=Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"ok http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        command, prefix, *methods = line.rstrip("\n").split("\t")
        if command == "deny":
            gate.denied = [*gate.denied, (prefix, frozenset(methods))]
        else:
            gate.denied = []
        sys.stdout.write("ok\n")
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    _serve()
