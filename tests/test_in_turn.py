"""Cases take turns: each runs under one combination, each value has cases, and the others are marked ``long``.

So are the cases between those that ``every`` keeps.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_each_case_runs_under_one_combination_in_turn(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_table.py").write_text(TABLE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  long\n  in_turn\n  every\n", encoding="utf-8")
    found = {}
    for marks in ("not long", "long or not long"):
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", marks]
        done = subprocess.run(
            [*command, str(tmp_path)],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found[marks] = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert sorted(found["not long"]) == [
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
    assert len(found["long or not long"]) == 5 * 4 + 2 * 2 + 2 + 7
