"""What a reader of a block costs, and what it saves that blocks share a file.

Run: ``python -m benchmarks.packed``; it takes about three minutes.

The same rows are written in column groups with blocks of 5,000 and of 100,000 rows, as files and packed. A query reads
columns of one group (its blocks are streamed) or of two (the blocks of one are held). Nothing is skipped, so block
sizes differ in openings alone. Every query runs on one table after another; the first round only warms up. The figures
are medians, in seconds that pass and in seconds of the processor, which a busy machine changes less.

A cell's cost comes from the same query with more columns. The cost of a reader, in cells, is what
`es_skipping.layout.GSOP` takes as ``opening``.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.scan_cost import processor_seconds
from es_skipping import layout
from es_skipping.layout.groups.manifest import FORMAT, MANIFEST, Block, GroupManifest, Partition, StoredGroup
from es_skipping.layout.groups.numbered_rows import TUPLE

PARTITIONS, ROWS, COLUMNS = 2, 1_000_000, 16
"""Of a table; ``ROWS`` of a partition, ``COLUMNS`` of a group."""
SIZES: Final = (5_000, 100_000)
FEW, MANY = 4, 16
QUERIES: Final = {
    "one group": [f"a{at}" for at in range(FEW)],
    "one group, more columns": [f"a{at}" for at in range(MANY)],
    "two groups": [f"{group}{at}" for group in "ab" for at in range(FEW // 2)],
}


def write(root: Path, rows: int) -> None:
    """A table whose groups have different orders, each block a file."""
    generator = np.random.default_rng(7)
    groups = tuple(
        StoredGroup(f"es_skipping_group_{at}", names, names, ())
        for at, names in enumerate(tuple(f"{group}{at}" for at in range(COLUMNS)) for group in "ab")
    )
    partitions = []
    for number in range(PARTITIONS):
        values = {name: generator.integers(0, 1 << 40, ROWS) for group in groups for name in group.columns}
        blocks: list[tuple[Block, ...]] = []
        for group in groups:
            (root / group.directory).mkdir(parents=True, exist_ok=True)
            order = generator.permutation(ROWS)
            own = []
            for first in range(0, ROWS, rows):
                tuples = np.sort(order[first : first + rows])
                columns = {name: values[name][tuples] for name in group.columns}
                file = f"part-{number}-{first}.parquet"
                table = pa.table({**columns, TUPLE: pa.array(tuples, pa.int32())})
                pq.write_table(table, root / group.directory / file, row_group_size=rows)
                own.append(Block(file, len(tuples), True, ()))
            blocks.append(tuple(own))
        partitions.append(Partition(ROWS, tuple(blocks)))
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": {}} for group in groups for name in group.columns
    ]
    manifest = GroupManifest({"type": "struct", "fields": fields}, TUPLE, (), groups, tuple(partitions))
    (root / MANIFEST).write_bytes(manifest.to_json())


def measured(
    spark: SparkSession, tables: dict[tuple[int, str], Path], rounds: int
) -> dict[tuple[int, str, str], tuple[float, float]]:
    """By block size, form and query: seconds that pass, and of the processor."""
    took: dict[tuple[int, str, str], list[tuple[float, float]]] = {}
    answers: dict[str, object] = {}
    for number in range(rounds + 1):
        for query, columns in QUERIES.items():
            for (rows, form), path in tables.items():
                df = spark.read.format(FORMAT).load(str(path)).selectExpr(*(f"max({name})" for name in columns))
                since, busy = time.perf_counter(), processor_seconds(spark)
                answer = df.collect()
                spent = time.perf_counter() - since, processor_seconds(spark) - busy
                assert answer == answers.setdefault(query, answer), (rows, form, query)
                if number:
                    took.setdefault((rows, form, query), []).append(spent)
    return {
        key: (statistics.median(one for one, _ in own), statistics.median(one for _, one in own))
        for key, own in took.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="that are timed, after one that is not")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "3g")
    builder = builder.config("spark.es_skipping.store.url", str(folder / "store"))
    spark = esk.configure(builder).getOrCreate()
    tables = {}
    for rows in SIZES:
        files, packed = folder / f"files-{rows}", folder / f"packed-{rows}"
        write(files, rows)
        shutil.copytree(files, packed)
        layout.repack_groups(spark, str(packed))
        tables[rows, "files"], tables[rows, "packed"] = files, packed
    found = measured(spark, tables, options.rounds)
    small, large = SIZES
    blocks = {rows: PARTITIONS * ROWS // rows for rows in SIZES}
    print("| query | blocks | files, s | packed, s | files, CPU s | packed, CPU s |\n|---|---|---|---|---|---|")
    for query in QUERIES:
        for rows in SIZES:
            (wall, busy), (packed_wall, packed_busy) = (found[rows, form, query] for form in ("files", "packed"))
            opened = blocks[rows] * (1 + query.startswith("two"))
            print(f"| {query} | {opened} | {wall:.2f} | {packed_wall:.2f} | {busy:.2f} | {packed_busy:.2f} |")
    few, many = (found[large, "packed", query][1] for query in ("one group", "one group, more columns"))
    cell = (many - few) / ((MANY - FEW) * PARTITIONS * ROWS)
    print(f"a cell: {cell * 1e9:.1f} ns")
    for form in ("files", "packed"):
        for query in ("one group", "two groups"):
            more = (blocks[small] - blocks[large]) * (1 + query.startswith("two"))
            block = (found[small, form, query][1] - found[large, form, query][1]) / more
            print(f"a block, {form}, {query}: {block * 1e3:.2f} ms, {block / cell:,.0f} cells")
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
