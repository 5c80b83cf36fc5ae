"""A Java application without a word about skipping: a helper answers, and whatever happens to it, rows are right."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.applications import Application, Lake, helpers_of

ONE = ["5|w5|2.5"]


def one(lake: Lake) -> str:
    """A query that needs one file."""
    return f"SELECT * FROM parquet.`{lake.data}` WHERE id = 5"


def eventually(check: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def shared(indexed: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """An application with the settings that a lake has, for tests that leave it running."""
    with Application(Lake(*indexed, tmp_path_factory.mktemp("shared"))) as application:
        yield application


def helper_of(application: Application) -> int:
    (helper,) = helpers_of(application.pid)
    return helper


def socket_directories(folder: Path) -> list[Path]:
    return sorted(folder.glob("es-skipping-*"))


def test_a_helper_answers_and_ends_with_the_application(lake: Lake, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    plugin = {"spark__plugins": "io.esskipping.SkippingPlugin"}
    with Application(lake, environment={"XDG_RUNTIME_DIR": str(runtime)}, **plugin) as application:
        eventually(lambda: socket_directories(runtime))  # before any query
        helper = helper_of(application)
        (directory,) = socket_directories(runtime)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert application.run(one(lake)) == (1, ONE)
        assert application.run(one(lake), session="second") == (1, ONE)  # newSession()
        assert application.run(f"SELECT id FROM parquet.`{lake.data}` WHERE half = 4.5") == (1, ["9"])
        files, _ = application.run(f"SELECT id FROM parquet.`{lake.data}` WHERE word = 'nothing'")
        assert files <= 1
        application.run("SET spark.es_skipping.enabled=false", session="second")
        assert application.run(one(lake), session="second") == (20, ONE)
        assert application.run(one(lake)) == (1, ONE)
        token = Path(f"/proc/{helper}/cmdline").read_bytes() + Path(f"/proc/{helper}/environ").read_bytes()
        assert b"token" not in token.lower()
        assert application.warnings() == []
        assert application.close() == 0
    eventually(lambda: not os.path.exists(f"/proc/{helper}"))
    assert socket_directories(runtime) == []


def test_a_helper_ends_with_a_jvm_that_is_killed(lake: Lake, tmp_path: Path) -> None:
    with Application(lake, plain=True) as application:
        assert application.run(one(lake)) == (1, ONE)  # the jar alone, without the plugin and spark-submit
        assert application.run(one(lake), session="second") == (1, ONE)
        helper = helper_of(application)
        application.kill()
    eventually(lambda: not os.path.exists(f"/proc/{helper}"), 10)


def test_a_killed_helper_is_started_again(lake: Lake, shared: Application) -> None:
    assert shared.run(one(lake)) == (1, ONE)
    first, before = helper_of(shared), len(shared.warnings())
    os.kill(first, signal.SIGSTOP)
    shared.send(one(lake))  # a look-up waits in mid-query
    time.sleep(1)
    os.kill(first, signal.SIGKILL)
    assert shared.answer() == (20, ONE)
    eventually(lambda: shared.run(one(lake)) == (1, ONE))
    assert helper_of(shared) != first
    (warning,) = shared.warnings()[before:]
    assert "the helper ended (exit code 137" in warning
    assert "it is started again" in warning


def test_a_helper_that_hangs_is_replaced(lake: Lake, shared: Application) -> None:
    shared.run("SET spark.es_skipping.store.timeout=500ms", "hasty")
    eventually(lambda: shared.run(one(lake), "hasty") == (1, ONE))
    stopped, before = helper_of(shared), len(shared.warnings())
    os.kill(stopped, signal.SIGSTOP)
    for _ in range(3):
        assert shared.run(one(lake), "hasty") == (20, ONE)
    eventually(lambda: shared.run(one(lake), "hasty") == (1, ONE))
    assert helper_of(shared) != stopped
    assert len(shared.warnings()) - before <= 2  # no answer in time; the end of the helper


def test_two_jvms_never_meet(lake: Lake, shared: Application, tmp_path: Path) -> None:
    other = Lake(lake.data, (tmp_path / "nothing").as_uri(), tmp_path)
    before = shared.warnings()
    with Application(other) as another:
        assert shared.run(one(lake)) == (1, ONE)
        assert another.run(one(lake)) == (20, ONE)
        assert helper_of(shared) != helper_of(another)
        os.kill(helper_of(another), signal.SIGKILL)
        assert shared.run(one(lake)) == (1, ONE)
        assert shared.warnings() == before


@pytest.fixture
def long_path(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / ("application_1732372845123_0042/" * 4 + "tmp")
    made.mkdir(parents=True)
    return made


@pytest.mark.long
def test_a_long_temporary_directory_is_no_obstacle(lake: Lake, long_path: Path) -> None:
    environment = {"TMPDIR": str(long_path), "XDG_RUNTIME_DIR": str(long_path)}
    java = {"spark__driver__extraJavaOptions": f"-Djava.io.tmpdir={long_path}"}
    with Application(lake, environment=environment, **java) as application:
        assert application.run(one(lake)) == (1, ONE)
        assert application.warnings() == []


def without_package(folder: Path) -> str:
    """A Python that lacks the package."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nunset PYTHONPATH\ncd /\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    return str(python)


def test_without_its_python_one_warning_says_what_to_install(lake: Lake, tmp_path: Path) -> None:
    given = str(tmp_path / "no-python")
    with Application(lake, spark__es_skipping__helper__python=given) as application:
        for _ in range(2):
            assert application.run(one(lake)) == (20, ONE)
        (warning,) = application.warnings()
        says_what_to_install(warning, given)
        application.run("SET spark.es_skipping.strict=true", "strict")
        application.send(one(lake), "strict")
        with pytest.raises(AssertionError, match=r"LookupFailed.*the helper does not run.*pip install"):
            application.answer()


def says_what_to_install(warning: str, python: str) -> None:
    assert python in warning
    assert "python3 -m pip install es-skipping" in warning
    assert "spark.es_skipping.helper.python" in warning


def test_a_store_of_an_unknown_file_system_fails_open_with_one_warning(lake: Lake, shared: Application) -> None:
    before = len(shared.warnings())
    shared.run("SET spark.es_skipping.store.url=nowhere://lake/store", "lost")
    for _ in range(2):
        assert shared.run(one(lake), "lost") == (20, ONE)
    (warning,) = shared.warnings()[before:]
    assert 'No FileSystem for scheme "nowhere"' in warning
    assert shared.run(one(lake)) == (1, ONE)


def test_a_session_cannot_choose_the_helpers_program(lake: Lake, shared: Application, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    shared.run(f"SET spark.es_skipping.helper.python={evil}", "choosing")
    assert shared.run(one(lake), "choosing") == (1, ONE)
    os.kill(helper_of(shared), signal.SIGKILL)
    eventually(lambda: shared.run(one(lake), "choosing") == (1, ONE))
    assert not (tmp_path / "ran").exists()
