"""Encrypted blocks stay files: Parquet binds the ciphertext of a row group to its file and its place in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.build.test_encrypted_parquet import folder, jar
from tests.processes import run_python

__all__ = ["folder", "jar"]

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import es_skipping as esk
from es_skipping import layout
from es_skipping.spark.failures import error_text, reason

jar, folder, footers = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
spark = esk.configure(
    SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.conf.set("spark.es_skipping.store.url", (folder / "store").as_uri())
rows = spark.range(0, 400, 1, 2).selectExpr("id", "id % 7 AS a", "concat('s', id) AS s")
rows.write.parquet(str(folder / "lake"))
df = spark.read.parquet(str(folder / "lake"))
groups = (layout.ColumnGroup(("id", "a"), ()), layout.ColumnGroup(("s",), ()))

keys = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "Kms",
    "parquet.encryption.uniform.key": "kf",
    "kms.known": "kf",
}
for key, value in keys.items():
    spark.conf.set(key, value)

def outcome(run):
    try:
        return run()
    except Exception as error:
        return reason(error_text(error))

def answer(name):
    table = spark.read.format("es_skipping_groups").load(str(to / name))
    return sorted(list(row) for row in table.select("id", "a", "s").collect())

def kinds(name):
    found = json.loads((to / name / "_es_skipping_groups.json").read_text())
    return found["packed"], sorted(path.name.partition("-")[0] for path in (to / name).rglob("*.parquet"))

all_found = {}
for footer, plain in footers.items():
    spark.conf.set("parquet.encryption.plaintext.footer", plain)
    to = folder / footer
    found = all_found[footer] = {"expected": sorted(list(row) for row in df.collect())}
    for name, packed in {"wanted": True, "files": False}.items():
        found[name] = outcome(lambda: (layout.write_groups(df, groups, str(to / name), packed=packed), None)[1])
        found[name + " rows"] = outcome(lambda: answer(name))
        found[name + " repacked"] = outcome(lambda: layout.repack_groups(spark, str(to / name)))
        found[name + " rows then"] = outcome(lambda: answer(name))
        found[name + " kinds"] = outcome(lambda: kinds(name))
    data = [path for path in (to / "files").rglob("part-*.parquet")]
    found["readable without a key"] = sum(b"s399" in path.read_bytes() for path in data)
print(json.dumps(all_found))
spark.stop()
"""


FOOTERS = {"plain footer": "true", "encrypted footer": "false"}


@pytest.fixture(scope="module")
def all_found(tmp_path_factory: pytest.TempPathFactory, jar: Path) -> dict[str, Any]:
    """One process for both kinds of footers."""
    place = tmp_path_factory.mktemp("blocks")
    done = run_python(SCRIPT, place, str(jar), str(place), json.dumps(FOOTERS), seconds=300)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


@pytest.mark.parametrize("footer", FOOTERS)
def test_encrypted_blocks_stay_files(all_found: dict[str, Any], footer: str) -> None:
    found = all_found[footer]
    assert found["readable without a key"] == 0
    for name in ("wanted", "files"):
        assert found[name] is None
        assert found[f"{name} rows"] == found["expected"]
        assert "the blocks of file:" in found[f"{name} repacked"] and "are encrypted" in found[f"{name} repacked"]
        assert found[f"{name} rows then"] == found["expected"]
        assert found[f"{name} kinds"] == [False, ["part", "part"]]
