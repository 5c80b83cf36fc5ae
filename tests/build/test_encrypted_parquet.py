"""Parquet's modular encryption: Spark reads such files with its keys, and pyarrow must not look into their footers.

pyarrow ends the process (SIGABRT) where it is asked for a column of a plaintext footer whose key it lacks, so
everything here runs in a process of its own.
"""

from __future__ import annotations

import base64
import json
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest

from tests.java import compiled
from tests.processes import run_python

KMS = """
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KmsClient;
import java.util.Base64;

/** Knows the master keys that the configuration names. */
public class Kms implements KmsClient {
  private String known;

  public void initialize(Configuration configuration, String instance, String url, String token) {
    known = "," + configuration.get("kms.known", "") + ",";
  }

  private byte[] mixed(byte[] key, String master) {
    if (!known.contains("," + master + ",")) throw new KeyAccessDeniedException("no access to the key " + master);
    byte[] made = key.clone();
    for (int at = 0; at < made.length; at++) made[at] ^= (byte) master.hashCode();
    return made;
  }

  public String wrapKey(byte[] key, String master) {
    return Base64.getEncoder().encodeToString(mixed(key, master));
  }

  public byte[] unwrapKey(String key, String master) {
    return mixed(Base64.getDecoder().decode(key), master);
  }
}
"""

FOOTERS = {"plain": "true", "encrypted": "false"}
COLUMNS = {
    # what is indexed is `c`
    "footer's key": {"parquet.encryption.uniform.key": "kf"},
    "own key": {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc:c;kd:d"},
    "none": {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kd:d"},
}
KNOWN = {"known": "kf,kc,kd", "unknown": "kd"}
CASES = [" / ".join(case) for case in product(FOOTERS, COLUMNS, KNOWN)]

SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import es_skipping as esk
from es_skipping.spark.failures import error_text, reason

jar, to = sys.argv[1], Path(sys.argv[2])
footers, columns, known = map(json.loads, sys.argv[3:])
spark = esk.configure(
    SparkSession.builder.master("local[1]").config("spark.jars", jar).config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
).getOrCreate()
spark.sparkContext.setLogLevel("OFF")

def session(keys):
    own = spark.newSession()
    own.conf.set("parquet.crypto.factory.class", "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory")
    own.conf.set("parquet.encryption.kms.client.class", "Kms")
    own.conf.set("parquet.encryption.cache.lifetime.seconds", "0")
    own.conf.set("parquet.encryption.kms.instance.id", keys)  # else a client is taken that has other keys
    own.conf.set("kms.known", keys)
    return own

def outcome(run):
    try:
        return run()
    except Exception as error:
        return reason(error_text(error))

found = {}
for footer, plain in footers.items():
    for column, options in columns.items():
        place = str(to / "data" / footer / column.replace("'", "").replace(" ", "-"))
        writer = session("kf,kc,kd")
        rows = writer.range(0, 400, 1, 2).selectExpr("id AS c", "id % 7 AS d", "concat('s', id) AS s")
        options = {**options, "parquet.encryption.plaintext.footer": plain}
        rows.write.options(**options).parquet(place)
        for name, keys in known.items():
            own = session(keys)
            own.conf.set("spark.es_skipping.store.url", (to / "stores" / footer / column / name).as_uri())
            schema = "c bigint, d bigint, s string"

            def matching():
                rows = own.read.schema(schema).parquet(place).where("c > 350").select("c").collect()
                return sorted(row.c for row in rows)

            off = outcome(matching)
            made = esk.Dataset(own, place, schema=schema).create_indexes(esk.MinMax("c"))
            esk.enable(own)
            on = outcome(matching)
            skipped = sum(scan.objects_skipped for scan in esk.last_query(own).scans)
            why = sorted({why for _, why in made.failed})
            found[f"{footer} / {column} / {name}"] = [off, on, made.added, why, skipped]
print(json.dumps(found))
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encrypted")


@pytest.fixture(scope="module")
def jar(folder: Path) -> Path:
    """The key server, compiled."""
    source = folder / "Kms.java"
    source.write_text(KMS)
    return compiled(folder / "kms.jar", [source])


@pytest.fixture(scope="module")
def found(folder: Path, jar: Path) -> dict[str, Any]:
    tables = [json.dumps(table) for table in (FOOTERS, COLUMNS, KNOWN)]
    done = run_python(SCRIPT, folder, str(jar), str(folder), *tables, seconds=900)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


@pytest.mark.parametrize("case", CASES)
def test_rows_are_equal_and_the_process_lives(found: dict[str, Any], case: str) -> None:
    off, on, added, why, skipped = found[case]
    assert on == off
    if case.endswith("/ known"):
        assert off == list(range(351, 400))
    if isinstance(off, list):
        assert (added, why, skipped) == (2, [], 1)
    else:
        (reason,) = why
        assert (added, skipped) == (0, 0)
        assert "no access to the key k" in reason


def test_what_pyarrow_tells_of_a_signed_footer(found: dict[str, Any], folder: Path) -> None:
    """By which it is known to be signed: it counts the bytes that it read, and the signature is not among them."""
    assert found
    for path in sorted((folder / "data" / "plain").rglob("*.parquet")):
        length = int.from_bytes(path.read_bytes()[-8:-4], "little")
        assert length - pq.read_metadata(path).serialized_size == 28


ASKED = """
import sys
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType
from es_skipping.build.footers import Footer, _Tail, _whole, read_extent

for path in sys.argv[1:]:
    data = open(path, "rb").read()
    for file in (open(path, "rb"), _Tail(len(data), lambda offset: data[offset:])):
        try:
            print(read_extent(Footer(_whole(file)), Column(("c",), DataType("bigint"))))
        except ValueError as error:
            print(error)
"""


def test_a_signed_footer_is_not_looked_into(tmp_path: Path) -> None:
    """Files as pyarrow writes them, locally and from afar; where it looks, this process of its own is aborted."""
    table = pa.table({"c": [1, 2], "d": [3, 4]})
    pq.write_table(table, tmp_path / "open.parquet")
    factory = encryption.CryptoFactory(lambda config: _Kms())
    chosen = encryption.EncryptionConfiguration(footer_key="kf", column_keys={"kc": ["c"]}, plaintext_footer=True)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), chosen)
    with pq.ParquetWriter(tmp_path / "signed.parquet", table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    done = run_python(ASKED, tmp_path, str(tmp_path / "open.parquet"), str(tmp_path / "signed.parquet"))
    extent = "Extent(low=1, high=2, nulls=0, nans=0, known=True)"
    refused = "the footer is signed, so some columns may be encrypted"
    assert done.stdout.splitlines() == [extent, extent, refused, refused]


class _Kms(encryption.KmsClient):  # type: ignore[misc]
    """Wraps keys in nothing."""

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64decode(key)
