"""What is checked in a cell: rows and objects read of the same queries, skipping on and off."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import es_skipping as esk
from tests.hdfs_cluster import shared_cluster
from tests.matrix.cells import Cell
from tests.s3_server import shared_server
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age

__all__ = ["check"]

ROWS: Final = 240
OBJECTS: Final = 6

_COLUMNS: Final = {
    "id": "id",
    "word": "if(id % 11 = 0, null, concat('w', lpad(cast(id div 4 as string), 3, '0')))",
    "amount": "if(id % 13 = 0, double('NaN'), id / 4D)",
    "day": "date_add(date'2024-01-01', cast(id div 10 as int))",
    "flag": "id >= 120",
}
_TEXT: Final = {"value": "concat('line', lpad(cast(id as string), 4, '0'))"}
_LEVELS: Final = {"p": "id div 80", "q": "concat('q', (id div 40) % 2)"}
_SCHEMA: Final = "id bigint, word string, amount double, day date, flag boolean"

_QUERIES: Final = {
    "id = 57": 1,
    "57 >= id AND id > 50": 1,
    "id BETWEEN 75 AND 85": 2,
    "id IN (3, 200)": 2,
    "NOT (id < 200)": 1,
    "word = 'w010'": 1,
    "word LIKE 'w05%'": 1,
    "word IS NULL": 6,
    "amount > 58": 6,  # NaN is above everything
    "amount = double('NaN')": 6,
    "day = date'2024-01-09'": 1,
    "flag AND id < 125": 1,
    "id = 57 OR word = 'w050'": 2,
    "id = 57 AND word = 'w050'": 0,
    "id % 2 = 0 AND id < 20": 1,
}
"""Of how many objects a query must read at most; the first has 40 rows, and so on."""
_TEXT_QUERIES: Final = {
    "value = 'line0057'": 1,
    "value LIKE 'line00%'": 3,
    "value >= 'line0230'": 1,
    "value IN ('line0001', 'line0239')": 2,
    "value > 'm'": 0,
}
_DIMENSION: Final = "SELECT * FROM VALUES {first}, {second} AS dimension(key, name) WHERE name = 'kept'"
_PARTITION_QUERIES: Final = {"p = 1 AND {key} = {at90}": 1, "p = 0 OR {key} = {at90}": 3, "p = 2": 2}


def check(cell: Cell, spark: Any, folder: Path, elasticsearch_url: str) -> None:
    """Make a dataset, index it and query it, as a cell says.

    Parameters
    ----------
    spark
        A session of the cell's client; its settings are changed.
    folder
        Empty; for the data, and the metadata where the store is of Parquet.
    """
    if cell["client"] == "classic" and any(cell[factor].endswith("s3") for factor in ("data on", "store")):
        shared_server().attach(spark)
    _settle(cell, spark, folder, elasticsearch_url)
    read = _written(cell, spark, folder)
    esk.enable(spark)
    for query, (asked, most) in _queries(cell, spark).items():
        esk.disable(spark)
        expected = sorted(map(repr, asked(read()).collect()))
        esk.enable(spark)
        with esk.observe(spark) as report:
            df = asked(read())
            found = sorted(map(repr, df.collect()))
        assert found == expected, f"{query}: other rows with skipping than without"
        assert not report.failed, f"{query}: {report}"
        # of Spark Connect the executed plan cannot be had, and so not Spark's own count
        opened = sum(num_files(df)) if cell["client"] == "classic" else report.objects_read
        assert opened <= most, f"{query}: {opened} objects read, not {most}: {report}"
    esk.disable(spark)


def _settle(cell: Cell, spark: Any, folder: Path, elasticsearch_url: str) -> None:
    on = {"on": "true", "off": "false"}
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": on[cell["adaptive"]],
        "spark.sql.codegen.wholeStage": on[cell["codegen"]],
        "spark.sql.codegen.factoryMode": {"on": "FALLBACK", "off": "NO_CODEGEN"}[cell["codegen"]],
        "spark.sql.parquet.enableVectorizedReader": on[cell["vectorized"]],
        "spark.sql.orc.enableVectorizedReader": on[cell["vectorized"]],
        "spark.sql.ansi.enabled": on[cell["ansi"]],
        "spark.sql.caseSensitive": {"ignored": "false", "told apart": "true"}[cell["case"]],
        "spark.es_skipping.store.url": (
            elasticsearch_url if cell["store"] == "elasticsearch" else _root(cell["store"], folder / "metadata")
        ),
        "spark.es_skipping.store.timeout": "20s",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)


def _root(where: str, local: Path) -> str:
    """The URL of an empty folder: on the disk, or on one of the servers of the test run."""
    if where.endswith("hdfs"):
        return f"{shared_cluster().folder('matrix')}/{local.name}"
    if where.endswith("s3"):
        return f"{shared_server().bucket('matrix')}/{local.name}"
    return local.as_uri()


def _written(cell: Cell, spark: Any, folder: Path) -> Callable[[], Any]:
    """Write and index the data; what reads it."""
    format, files = cell["format"], cell["files"]
    text = format == "text"
    levels = {"partitioned": ["p"], "two levels": ["p", "q"]}.get(files, [])
    columns = [f"{sql} AS {name}" for name, sql in (_TEXT if text else _COLUMNS).items()]
    columns += [f"{_LEVELS[name]} AS {name}" for name in levels]
    data = _root(cell["data on"], folder / "data")
    parts = {"roots": [("x", 0), ("y", 1)], "glob": [("x", 0), ("y", 1)]}.get(files, [("", None)])
    table = f"matrix_{secrets.token_hex(4)}"
    for name, half in parts:
        low, high = (0, ROWS) if half is None else (half * ROWS // 2, (half + 1) * ROWS // 2)
        frame = spark.range(low, high, 1, OBJECTS * (high - low) // ROWS).selectExpr(*columns)
        writer = frame.write.format(format).partitionBy(*levels)
        if cell["read as"] == "table":
            writer.option("path", f"{data}/{name}").saveAsTable(table)
        else:
            writer.save(f"{data}/{name}")
    age(folder)  # those on the disk; of others a build waits until they can be believed
    paths = {"roots": [f"{data}/x", f"{data}/y"], "glob": f"{data}/*"}.get(files, data)
    schema = None
    if format in ("csv", "json"):
        schema = ", ".join([_SCHEMA, *(f"{name} {'bigint' if name == 'p' else 'string'}" for name in levels)])

    def reader() -> Any:
        found = spark.read.format(format)
        return (found if schema is None else found.schema(schema)).load(paths)

    if cell["read as"] == "table":
        dataset = esk.Dataset(spark, table=table)
    else:
        dataset = esk.Dataset(spark, paths, format=format, schema=schema)
    indexes: list[Any] = (
        [esk.MinMax("value"), esk.Prefix("value", length=6)]
        if text
        else [*map(esk.MinMax, ("id", "amount", "day", "flag")), esk.ValueList("word")]
    )
    result = dataset.create_indexes(*indexes)
    assert (result.added, result.failed) == (OBJECTS, ()), result
    if cell["read as"] == "path":
        return reader
    if cell["read as"] == "view":
        reader().createOrReplaceTempView(table)
    return lambda: spark.read.table(table)


def _queries(cell: Cell, spark: Any) -> dict[str, tuple[Callable[[Any], Any], int]]:
    """What is asked of a frame, and how many objects it may read."""
    return {
        **{condition: (_where(condition), most) for condition, most in _conditions(cell).items()},
        **_shapes(cell, spark),
    }


def _where(condition: str) -> Callable[[Any], Any]:
    return lambda frame: frame.where(condition)


def _conditions(cell: Cell) -> dict[str, int]:
    text = cell["format"] == "text"
    queries = dict(_TEXT_QUERIES if text else _QUERIES)
    if cell["case"] == "ignored":
        queries |= {condition.upper().replace("W0", "w0").replace("LINE", "line").replace("'M'", "'m'"): most
                    for condition, most in list(queries.items())[:2]}  # fmt: skip
    if cell["files"] in ("partitioned", "two levels"):
        at = {"key": "value", "at90": "'line0090'"} if text else {"key": "id", "at90": "90"}
        queries |= {condition.format(**at): most for condition, most in _PARTITION_QUERIES.items()}
    return queries


def _shapes(cell: Cell, spark: Any) -> dict[str, tuple[Callable[[Any], Any], int]]:
    """Joins by the keys of a dimension, and the first rows of an order."""
    text = cell["format"] == "text"
    key = "value" if text else "id"
    first, second = (
        ("('line0057', 'kept')", "('line0150', 'dropped')") if text else ("(57L, 'kept')", "(150L, 'dropped')")
    )
    dimension = spark.sql(_DIMENSION.format(first=first, second=second))

    def joined(how: str) -> Callable[[Any], Any]:
        return lambda frame: frame.join(dimension.hint("broadcast"), frame[key] == dimension["key"], how)

    columnar = cell["format"] in ("parquet", "orc")  # a record of a text format depends on the columns that are read
    return {
        "inner join": (joined("inner"), 1),
        "semi join": (joined("left_semi"), 1),
        "anti join": (joined("left_anti"), OBJECTS),
        "the last rows": (lambda frame: frame.orderBy(frame[key].desc()).limit(3), 1 if columnar else OBJECTS),
    }
