"""Cases take turns: each runs under one combination, each value has cases, and the others are marked ``long``.

So are the cases between those that ``every`` keeps, and the tests of the half whose day it is not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import pytest
from tests.in_turn import mark_long

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_long(items)
"""

TABLE = """
import pytest

pytestmark = pytest.mark.in_turn("store", "adaptive")

@pytest.fixture(params=["disk", "server"])
def store(request):
    return request.param

@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(("sql", "files"), [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 2)])
def test_sql(store, adaptive, sql, files):
    pass

def test_store_alone(store):
    pass

def test_server_alone(store):
    pass

@pytest.mark.parametrize("other", [1, 2])
def test_other(other):
    pass

@pytest.mark.every(3)
@pytest.mark.parametrize("case", range(7))
def test_alike(case):
    pass
"""


def names(folder: Path, marks: str, **environment: str) -> list[str]:
    """The tests of the table that pytest would run."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", marks]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).resolve().parent.parent), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_table.py").write_text(TABLE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  long\n  in_turn\n  every\n", encoding="utf-8")
    return tmp_path


def test_each_case_runs_under_one_combination_in_turn(folder: Path) -> None:
    assert names(folder, "not long") == [
        "test_alike[0]",
        "test_alike[3]",
        "test_alike[6]",
        "test_other[1]",
        "test_other[2]",
        "test_server_alone[disk]",
        "test_sql[disk-a-1-True]",
        "test_sql[disk-b-1-False]",
        "test_sql[disk-e-2-True]",
        "test_sql[server-c-2-True]",
        "test_sql[server-d-2-False]",
        "test_store_alone[server]",
    ]
    assert len(names(folder, "long or not long")) == 5 * 4 + 2 * 2 + 2 + 7


def test_two_halves_are_the_whole(folder: Path) -> None:
    first, second = (names(folder, "not long", ES_SKIPPING_HALF=half) for half in "01")
    assert min(len(first), len(second)) > 2
    assert sorted(first + second) == names(folder, "not long")
