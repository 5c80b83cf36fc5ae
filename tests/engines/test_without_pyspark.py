"""Look-ups need no pyspark; a call that does says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
import es_skipping as esk
"""


def without_pyspark(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code where pyspark, py4j and pandas cannot be imported."""
    command = [sys.executable, "-c", BLOCK + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_files_are_listed_without_pyspark(spark: SparkSession, store: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    for file in range(4):
        pq.write_table(pa.table({"x": [file]}), folder / f"{file}.parquet")
    types = (esk.MinMax("x"), esk.ValueList("x"), esk.BloomFilter("x"), esk.Hybrid("x"), esk.GapList("x", gaps=2))
    esk.Dataset(spark, str(folder)).create_indexes(*types)
    code = "print(*esk.files(sys.argv[1], 'x = 2', store=eval(sys.argv[2])))\nassert 'pyspark' not in sys.modules"
    done = without_pyspark(code, str(folder), repr(store))
    assert done.stdout.split() == [f"{folder}/2.parquet"], done.stderr
    url = store["spark.es_skipping.store.url"]
    code = "from es_skipping.cli import main\nraise SystemExit(main(['files', *sys.argv[1:]]))"
    done = without_pyspark(code, str(folder), "x = 2", "--store", url)
    assert (done.returncode, done.stdout.split()) == (0, [f"{folder}/2.parquet"]), done.stderr


def test_a_call_that_needs_spark_says_what_to_install() -> None:
    for call in (
        "esk.Dataset(None, '/lake')",
        "esk.configure(None)",
        "esk.enable(None)",
        "esk.explain(None)",
        "esk.declare_function('f', version='1')",
        "esk.list_indexes(None)",
        "esk.last_query(None)",
        "esk.layout.SOP(None)",
    ):
        done = without_pyspark(call)
        assert done.returncode != 0
        assert "pip install 'es-skipping[spark]'" in done.stderr.splitlines()[-1], (call, done.stderr)
    done = without_pyspark("from es_skipping.cli import main\nraise SystemExit(main(['index', 'list']))")
    assert (done.returncode, done.stderr.count("es-skipping[spark]")) == (1, 1)
