"""Python and the JVM mean the same object by the same key, whatever it is called."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.spark.objects_read import num_files
from tests.spark.row_oracle import Honest

PIECES = [
    *"abzAZ09-_.~!@$&'()+,;=^`|<>\"",
    *(" ", "  ", "%", "%20", "%2F", "%C3%A9", "#", "?", "*", "[a]", "{b,c}", "\\", "\t"),
    *("é", "e\u0301", "ß", "İ", "ı", "\u00a0", "\u200b", "\ufeff", "\u202e"),
    *("日本", "ע", "\U0001f600", "\U0010ffff", "\ue000"),
]  # fmt: skip
OBJECTS = 150


def odd_names(rng: random.Random) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < OBJECTS:
        name = "".join(rng.choices(PIECES, k=rng.randint(1, 12)))
        if not name.startswith((".", "_")) and not name.endswith(("_COPYING_", ".crc")) and len(name.encode()) < 200:
            names.setdefault(name)
    return list(names)


def test_objects_of_odd_names_skip(on: SparkSession, honest: Honest, know: Callable[..., None], tmp_path: Path) -> None:
    """All but one are named by their keys; an object whose key the JVM makes otherwise would be read too."""
    folder = tmp_path / "lake"
    folder.mkdir()
    for number, name in enumerate(odd_names(random.Random(20261122))):
        pq.write_table(pa.table({"id": [number]}), folder / name)
    know(honest, folder)
    assert len(honest.rows) == OBJECTS
    for wanted in (0, OBJECTS - 1):
        df = on.read.parquet(str(folder)).where(f"id = {wanted}")
        assert [row.id for row in df.collect()] == [wanted]
        assert num_files(df) == [1]
