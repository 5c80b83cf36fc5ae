"""Delta tables of random rows, and random commits to them.

A table remembers the columns of each of its versions, so that predicates can be drawn for any of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import es_skipping as esk
from tests.jvm import INTERPRETED
from tests.soundness.data import COLUMNS, SqlColumn, write_objects
from tests.soundness.sql import Predicates

__all__ = ["WIDER", "Field", "RandomTable", "indexes_of", "sessions_of"]

WIDER = {"int": "bigint", "float": "double"}
"""The types that Delta and Iceberg both turn into a wider one, without writing a file again."""

_PARTITION = SqlColumn("p", "int", pa.int32(), (None, 0, 1, 2), lambda v: str(v or 0))
_PARTITION_ORIGIN = "nullif(CAST(pmod(floor(id / 1000000), 4) AS INT), 3)"
_NEW_NAMES = ("c1", "c2", "c3", "c4", "c5", "c6")
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    **INTERPRETED,
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.optimize.minFileSize": "60000",  # a few of these small files make one
    "spark.databricks.delta.optimize.maxFileSize": "60000",
    "spark.sql.files.openCostInBytes": "1000000",  # files are not split, and a few are read by one task
}


def sessions_of(base: SparkSession, url: str, skipping: int = 1) -> list[SparkSession]:
    """A session without skipping, and then some with it."""
    found = [base.newSession() for _ in range(skipping + 1)]
    for session in found:
        for key, value in _SETTINGS.items():
            session.conf.set(key, value)
    esk.disable(found[0])  # a new session begins with the settings of the one that it was made from
    for session in found[1:]:
        session.conf.set("spark.es_skipping.store.url", url)
        session.conf.set("spark.es_skipping.store.timeout", "60s")
        session.conf.set("spark.es_skipping.query.budget", "120s")
        session.conf.set("spark.es_skipping.strict", "true")
        esk.enable(session)
    return found


@dataclass(frozen=True)
class Field:
    """A column as it is called now, and what it is made of in the rows that are appended."""

    column: SqlColumn
    origin: str

    @property
    def is_nested(self) -> bool:
        return "." in self.column.sql and not self.column.sql.startswith("`")

    @property
    def is_partition(self) -> bool:
        return self.origin == _PARTITION_ORIGIN

    def widened(self) -> Field:
        """The same column with the wider type."""
        wide = WIDER[self.column.sql_type]
        return Field(replace(self.column, sql_type=wide), f"CAST({self.origin} AS {wide})")


def indexes_of(fields: Sequence[Field], rng: random.Random | None = None) -> list[Any]:
    """Indexes of these columns: every type that each can have, or a random third of them."""
    found: list[Any] = []
    for field in fields:
        name, type = field.column.sql, field.column.sql_type.partition("(")[0]
        if field.is_partition:
            continue
        found.append(esk.MinMax(name))
        if type not in ("boolean", "float"):
            found.append(esk.ValueList(name))
        if type == "string":
            found += [esk.Prefix(name, length=3), esk.Suffix(name, length=3)]
        if type in ("int", "string", "date") and not field.is_nested:
            found.append(esk.BloomFilter(name, fpp=0.01))
    types = {field.column.sql: field.column.sql_type for field in fields}  # columns may have swapped their names
    if types.get("lat") == types.get("lon") == "double":
        found.append(esk.GeoBox("lat", "lon", boxes=3))
    if types.get("i32") == "int":
        found.append(esk.MinMax("i32 + 1"))
    if types.get("city") == "string":
        found.append(esk.ValueList("upper(city)"))
    return found if rng is None else rng.sample(found, max(3, len(found) // 3))


class RandomTable:
    """A table and what happens to it; ``rng`` decides everything.

    Parameters
    ----------
    off
        Judges what a commit did.
    folder
        Where rows are written before they are appended.
    """

    def __init__(
        self,
        name: str,
        off: SparkSession,
        folder: Path,
        rng: random.Random,
        *,
        partitioned: bool = False,
        vectors: bool = True,
        objects: int = 16,
        columns: Sequence[SqlColumn] = COLUMNS,
    ) -> None:
        self.name, self._off, self._folder, self._rng = name, off, folder, rng
        self.fields = tuple(Field(column, column.sql) for column in columns)
        if partitioned:
            self.fields += (Field(_PARTITION, _PARTITION_ORIGIN),)
        self.vectors = vectors
        self.log: list[str] = []
        self.refused = self.not_as_expected = 0
        self.oldest = 0
        self._batches = 0
        self._left: list[str] = []
        self._fewest = min(10, len(columns) // 2)
        off.conf.set("spark.databricks.delta.properties.defaults.columnMapping.mode", "name")
        off.conf.set("spark.databricks.delta.properties.defaults.enableDeletionVectors", str(vectors).lower())
        self._append(objects, 40, *(["p"] if partitioned else []))
        detail = off.sql(f"DESCRIBE DETAIL {name}").head()
        assert detail is not None
        self._logged = Path(detail["location"].removeprefix("file:")) / "_delta_log"
        self.oldest = self.version
        self._fields_at = {self.version: self.fields}

    @property
    def version(self) -> int:
        """The latest."""
        return max(int(path.stem) for path in self._logged.glob("*.json") if path.stem.isdigit())

    def fields_at(self, version: int) -> tuple[Field, ...]:
        return self._fields_at[version]

    def some_version(self) -> int:
        return self._rng.randint(self.oldest, self.version)

    def snapshot(self, version: int | None) -> str:
        """A relation in SQL; without a version, the latest."""
        return self.name if version is None else f"{self.name} VERSION AS OF {version}"

    def predicates(self, rng: random.Random, version: int | None = None) -> Predicates:
        fields = self.fields if version is None else self.fields_at(version)
        return Predicates(rng, [field.column for field in fields])

    # --- commits

    def commit(self, session: SparkSession, action: Callable[[SparkSession], str]) -> None:
        """One action; what Spark or Delta refuses without skipping too counts as refused."""
        before, begun = self.version, time.monotonic()
        try:
            said = action(session)
        except AssertionError:
            raise
        except Exception as error:
            self.refused += 1
            said = f"refused: {str(error).splitlines()[0][:200]}"
        for version in range(before + 1, self.version + 1):
            self._fields_at.setdefault(version, self.fields)  # an action of several commits notes those in between
        self.log.append(f"{self.version} {action.__name__} {said}, {time.monotonic() - begun:.1f} s")

    @property
    def actions(self) -> list[tuple[int, Callable[[SparkSession], str]]]:
        return [
            (4, self.append), (4, self.delete), (2, self.delete_all), (3, self.update), (3, self.merge),
            (2, self.optimize), (2, self.restore), (2, self.rename), (1, self.swap_names), (2, self.add),
            (1, self.drop), (1, self.turn_vectors), (1, self.widen),
        ]  # fmt: skip

    def some_action(self) -> Callable[[SparkSession], str]:
        """Each of them once in random order before any comes again."""
        if not self._left:
            self._left = [action.__name__ for weight, action in self.actions for _ in range(weight)]
            self._rng.shuffle(self._left)
        found: Callable[[SparkSession], str] = getattr(self, self._left.pop())
        return found

    def _append(self, objects: int, rows: int, *partitions: str) -> None:
        self._batches += 1
        folder = self._folder / f"rows-{self._batches}"
        write_objects(folder, self._rng.randrange(1 << 30), objects, rows)
        self._off.conf.set("spark.sql.files.openCostInBytes", str(1 << 27))  # one task for each object
        try:
            rows_ = self._off.read.parquet(str(folder)).selectExpr(
                f"id + {self._batches}00000000 AS id", *self._selected()
            )
            rows_.write.format("delta").mode("append").partitionBy(*partitions).saveAsTable(self.name)
        finally:
            self._off.conf.set("spark.sql.files.openCostInBytes", _SETTINGS["spark.sql.files.openCostInBytes"])

    def _selected(self) -> Iterator[str]:
        for field in self.fields:
            if not field.is_nested:
                yield f"{field.origin} AS {field.column.sql}"
        nested = {field.origin: field.column.sql.split(".") for field in self.fields if field.is_nested}
        if nested:
            struct, x = nested["n.x"]
            yield f"CASE WHEN n IS NOT NULL THEN named_struct('{x}', n.x, 'deep', n.deep) END AS {struct}"

    def append(self, session: SparkSession) -> str:
        objects = self._rng.choice((1, 3, 6))
        self._append(objects, self._rng.choice((5, 40)))
        return f"{objects} objects"

    def _where(self) -> str:
        draw = self.predicates(self._rng)
        return f"{draw.draw(2)} AND pmod(id, 3) <> 0" if self._rng.random() < 0.5 else str(draw.draw(1))

    def _checked(self, session: SparkSession, change: str, expected: str, after: str) -> str:
        """A change in a session that may skip; its rows are those that a query without skipping expects."""
        before = self.version
        rows = _rows(self._off, expected)  # raises where Spark refuses the predicate
        try:
            session.sql(change).collect()
        except Exception:
            self._off.sql(change).collect()  # raises where it is refused without skipping too
            raise AssertionError(f"only skipping makes this fail: {change}\n" + "\n".join(self.log)) from None
        found = _rows(self._off, after)
        if found == rows:
            return change
        # Delta's own pruning may be what loses a row
        self._off.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {before}").collect()
        self._off.sql(change).collect()
        assert _rows(self._off, after) == found, f"{change} after\n" + "\n".join(self.log)
        self.not_as_expected += 1
        return f"not as expected, with skipping or without: {change}"

    def delete(self, session: SparkSession) -> str:
        where = self._where()
        return self._checked(
            session,
            f"DELETE FROM {self.name} WHERE {where}",
            f"SELECT id FROM {self.name} WHERE ({where}) IS NOT TRUE",
            f"SELECT id FROM {self.name}",
        )

    def delete_all(self, session: SparkSession) -> str:
        """Every row, or all rows but one, of a few files, which keep their physical rows."""
        bound = f"SELECT count(*) AS n FROM {self.name}"
        head = self._off.sql(f"SELECT id FROM {self.name} ORDER BY pmod(hash(id), 101), id LIMIT 3").collect()
        if not head:
            return f"nothing: {bound}"
        files = " OR ".join(f"floor(id / 1000000) = {row.id // 1_000_000}" for row in head)
        but = f" AND id <> {head[0].id}" if self._rng.random() < 0.5 else ""
        return self._checked(
            session,
            f"DELETE FROM {self.name} WHERE ({files}){but}",
            f"SELECT id FROM {self.name} WHERE NOT (({files}){but})",
            f"SELECT id FROM {self.name}",
        )

    def _changeable(self) -> SqlColumn:
        return self._rng.choice([f.column for f in self.fields if not f.is_nested and not f.is_partition])

    def update(self, session: SparkSession) -> str:
        where, column = self._where(), self._changeable()
        value = column.literal(self._rng.choice(column.domain)) if self._rng.random() < 0.9 else "NULL"
        return self._checked(
            session,
            f"UPDATE {self.name} SET {column.sql} = {value} WHERE {where}",
            f"SELECT id, CASE WHEN {where} THEN {value} ELSE {column.sql} END AS c FROM {self.name}",
            f"SELECT id, {column.sql} AS c FROM {self.name}",
        )

    def merge(self, session: SparkSession) -> str:
        where, also, column = self._where(), str(self.predicates(self._rng).draw(0)), self._changeable()
        value = column.literal(self._rng.choice(column.domain))
        source = f"SELECT DISTINCT if(pmod(id, 2) = 0, id, id + 7) AS key FROM {self.name} WHERE {where}"
        then = "DELETE" if self._rng.random() < 0.4 else f"UPDATE SET {column.sql} = {value}"
        joined = f"{self.name} t LEFT JOIN ({source}) s ON t.id = s.key"
        kept = f"SELECT id, {column.sql} AS c FROM {joined} WHERE (s.key IS NOT NULL AND {also}) IS NOT TRUE"
        changed = f"SELECT id, {value} AS c FROM {joined} WHERE s.key IS NOT NULL AND {also}"
        new = f"SELECT key AS id, {value} AS c FROM ({source}) s LEFT ANTI JOIN {self.name} t ON t.id = s.key"
        return self._checked(
            session,
            f"MERGE INTO {self.name} t USING ({source}) s ON t.id = s.key WHEN MATCHED AND {also} THEN {then} "
            f"WHEN NOT MATCHED THEN INSERT (id, {column.sql}) VALUES (s.key, {value})",
            " UNION ALL ".join([kept, new, *([] if then == "DELETE" else [changed])]),
            f"SELECT id, {column.sql} AS c FROM {self.name}",
        )

    def optimize(self, session: SparkSession) -> str:
        columns = [f.column.sql for f in self.fields if f.column.sql in ("i32", "s", "city", "d")]
        clustered = f" ZORDER BY ({self._rng.choice(columns)})" if columns and self._rng.random() < 0.4 else ""
        session.sql(f"OPTIMIZE {self.name}{clustered}").collect()
        return clustered

    def restore(self, session: SparkSession) -> str:
        version = self.some_version()
        session.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version}").collect()
        self.fields = self.fields_at(version)
        return str(version)

    def vacuum(self, session: SparkSession) -> str:
        session.sql(f"VACUUM {self.name} RETAIN 0 HOURS").collect()
        self.oldest = self.version
        return ""

    def turn_vectors(self, session: SparkSession) -> str:
        """Later deletes make deletion vectors, or write files anew."""
        if not self.vectors:
            return "never"
        on = self._rng.choice(("true", "false"))
        session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{on}')")
        return on

    # --- schema

    def _free_name(self) -> str:
        """A name that no column has now; some column may have had it before."""
        taken = {part for field in self.fields for part in field.column.sql.split(".")}
        once = {column.sql for column in COLUMNS if "." not in column.sql}
        return self._rng.choice(sorted((once | set(_NEW_NAMES)) - taken))

    def _rename(self, session: SparkSession, old: str, new: str) -> None:
        session.sql(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO {new}")
        full = f"{old.rpartition('.')[0]}.{new}" if "." in old and not old.startswith("`") else new

        def renamed(field: Field) -> Field:
            sql = field.column.sql
            if sql == old:
                return replace(field, column=replace(field.column, sql=full))
            if field.is_nested and sql.startswith(f"{old}."):
                return replace(field, column=replace(field.column, sql=f"{full}{sql[len(old) :]}"))
            return field

        self.fields = tuple(map(renamed, self.fields))

    def rename(self, session: SparkSession) -> str:
        names = sorted({f.column.sql.partition(".")[0] if f.is_nested else f.column.sql for f in self.fields})
        names += [f.column.sql for f in self.fields if f.origin == "n.x"]
        old, new = self._rng.choice(names), self._free_name()
        self._rename(session, old, new)
        return f"{old} to {new}"

    def swap_names(self, session: SparkSession) -> str:
        names = [f.column.sql for f in self.fields if f.column.sql_type in ("int", "string") and not f.is_nested]
        one, other = self._rng.sample(names, 2)
        for old, new in ((one, "aside"), (other, one), ("aside", other)):
            before = self.version
            self._rename(session, old, new)
            for version in range(before + 1, self.version + 1):
                self._fields_at[version] = self.fields
        return f"{one} and {other}"

    def add(self, session: SparkSession) -> str:
        of, name = self._rng.choice([c for c in COLUMNS if "." not in c.sql]), self._free_name()
        session.sql(f"ALTER TABLE {self.name} ADD COLUMN {name} {of.sql_type}")
        self.fields += (Field(replace(of, sql=name), of.sql),)
        return f"{name} {of.sql_type}"

    def drop(self, session: SparkSession) -> str:
        droppable = [f for f in self.fields if not f.is_nested and not f.is_partition]
        if len(droppable) < self._fewest:
            return "nothing"
        field = self._rng.choice(droppable)
        session.sql(f"ALTER TABLE {self.name} DROP COLUMN {field.column.sql}")
        self.fields = tuple(f for f in self.fields if f is not field)
        return field.column.sql

    def widen(self, session: SparkSession) -> str:
        """Files that were written before keep the narrower type."""
        narrow = [f for f in self.fields if f.column.sql_type in WIDER and not f.is_nested and not f.is_partition]
        if not narrow:
            return "nothing"
        wide = (field := self._rng.choice(narrow)).widened()
        session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        session.sql(f"ALTER TABLE {self.name} ALTER COLUMN {field.column.sql} TYPE {wide.column.sql_type}")
        self.fields = tuple(wide if f is field else f for f in self.fields)
        return f"{field.column.sql} to {wide.column.sql_type}"


def _rows(session: SparkSession, sql: str) -> list[str]:
    return sorted(map(repr, session.sql(sql).collect()))


@contextmanager
def dropped(session: SparkSession, name: str) -> Iterator[None]:
    """Drops a table in the end."""
    try:
        yield
    finally:
        session.sql(f"DROP TABLE IF EXISTS {name}")
