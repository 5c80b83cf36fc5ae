"""Footers that other projects' writers wrote, beside the values that they were given.

    make zoo

Where `es_skipping.build.footers` believes a footer, its bounds and its count of nulls must be right, whoever wrote the
file. The writers are those of the packages of ``wheels.txt``.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from es_skipping.build.footers import Footer, read_extent
from es_skipping.indexes.minmax import Extent
from es_skipping.predicates.tree import Column
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.testing.rows import arrow_array
from tests.zoo.peer import key

_POOLS: dict[str, Sequence[Any]] = {
    "tinyint": (-128, -1, 0, 1, 127),
    "smallint": (-32768, -1, 0, 255, 256, 32767),
    "int": (-(2**31), -1, 0, 255, 65536, 2**31 - 1),
    "bigint": (-(2**63), -1, 0, 2**32, 2**53 + 1, 2**63 - 1),
    "boolean": (False, True),
    "string": (
        "",
        "\x00",
        "a",
        "ab",
        "é" * 40,
        "\ud7ff" * 70,
        "\uff01",
        "\U0010ffff" * 30,
        "x" * 64,
        "x" * 65,
        "z" * 4000,
    ),
    "binary": (b"", b"\x00", b"\x7f", b"\x80", b"\xff" * 70, b"\xff" * 300, b"a" * 300),
    "date": (-25_567, -1, 0, 19_723, 40_000),
    "timestamp": (-1, 0, 1, 999, 1_000, 1_001, 1_700_000_000_123_456),
    "timestamp_ntz": (-1, 0, 1, 999, 1_000, 1_001, 1_700_000_000_123_456),
}
"""Values that every writer can hold."""
_NESTED = "int in a struct"
_TYPES = {name: parse_type(name) for name in _POOLS}


def _duckdb(table: pa.Table, path: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("held", table)
        connection.execute(f"COPY (SELECT * FROM held) TO '{path}' (FORMAT parquet)")


def _polars(table: pa.Table, path: Path) -> None:
    import polars

    polars.from_arrow(table).write_parquet(path, statistics="full", row_group_size=2)


def _datafusion(table: pa.Table, path: Path) -> None:
    from datafusion import SessionContext

    context = SessionContext()
    context.from_arrow(table, "held")
    context.table("held").write_parquet(path)


def _deltalake(table: pa.Table, path: Path) -> None:
    from deltalake import write_deltalake

    folder = path.with_suffix(".delta")
    write_deltalake(folder, table)
    (file,) = folder.glob("*.parquet")
    file.replace(path)


def _clickhouse(table: pa.Table, path: Path) -> None:
    import chdb

    given = path.with_suffix(".given")
    pq.write_table(table, given)
    chdb.query(f"INSERT INTO FUNCTION file('{path}', Parquet) SELECT * FROM file('{given}', Parquet)")


def _pyarrow(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=2, data_page_version="2.0")


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "duckdb": _duckdb,
    "polars": _polars,
    "datafusion": _datafusion,
    "deltalake": _deltalake,
    "chdb": _clickhouse,
    "pyarrow": _pyarrow,
}


def _right(found: Extent, values: Sequence[Any]) -> bool:
    held = [key(value) for value in values if value is not None]
    if found.nulls != len(values) - len(held):
        return False
    if not held:
        return found.low is None
    if found.low is None or found.high is None:
        return False
    one = found.low != found.high or min(held) == max(held)
    return bool(found.low <= min(held) and max(held) <= found.high and one)


def _drawn(rng: random.Random) -> dict[str, list[Any]]:
    """A table's columns by type."""
    count = rng.choice((1, 2, 3, 5))
    found = {}
    for name, pool in _POOLS.items():
        some = rng.sample(pool, rng.randint(1, 2)) + [None] * rng.randint(0, 1)
        found[name] = [rng.choice(some if rng.random() < 0.9 else [None]) for _ in range(count)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--tables", type=int, default=40)
    given = parser.parse_args()
    rng, wrong = random.Random(given.seed), []
    believed: Counter[str] = Counter()
    for _ in range(given.tables):
        drawn = _drawn(rng)
        arrays = {name: arrow_array(values, _TYPES[name]) for name, values in drawn.items()}
        table = pa.table({**{f"c_{name}": array for name, array in arrays.items()}, "n": _nested(rng, drawn, arrays)})
        folder = Path(tempfile.mkdtemp(prefix="es-skipping-zoo-"))
        try:
            for writer, write in WRITERS.items():
                path = folder / f"{writer}.parquet"
                write(table, path)
                footer = pq.read_metadata(path)
                for name, values in drawn.items():
                    path_of = ("n", "x") if name == _NESTED else (f"c_{name}",)
                    found = _believed(footer, path_of, _TYPES[name.partition(" ")[0]])
                    believed[writer] += found is not None
                    if found is not None and not _right(found, values):
                        wrong.append(f"{footer.created_by}: {name} {values} has {found}")
        finally:
            shutil.rmtree(folder)
    columns = given.tables * (len(_POOLS) + 1)
    told = ", ".join(f"{writer} {believed[writer]}" for writer in WRITERS)
    print(f"footers of {given.tables} tables by {len(WRITERS)} writers, seed {given.seed}; of {columns} columns each")
    print(f"believed: {told}; {len(wrong)} of them wrong")
    for line in wrong[:10]:
        print(line)
    return 1 if wrong or not all(believed[writer] for writer in WRITERS) else 0


def _nested(rng: random.Random, drawn: dict[str, list[Any]], arrays: dict[str, pa.Array]) -> pa.Array:
    """Structs of the integers, some of them null; what is then seen of their field is added to what was drawn."""
    missing = [rng.random() < 0.3 for _ in drawn["int"]]
    drawn[_NESTED] = [None if gone else value for gone, value in zip(missing, drawn["int"], strict=True)]
    return pa.StructArray.from_arrays([arrays["int"]], ["x"], mask=pa.array(missing))


def _believed(footer: pq.FileMetaData, path: tuple[str, ...], type: DataType) -> Extent | None:
    """What the package takes from a footer; as there, an error is a doubt."""
    try:
        return read_extent(Footer(footer), Column(path, type))
    except (ValueError, OverflowError):
        return None


if __name__ == "__main__":
    sys.exit(main())
