"""A dataset whose files and schema change, as a life makes them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from tests.soundness.folders import Folder

__all__ = ["Changing"]

_START_MS = 1_700_000_000_000
_ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}


class Changing:
    """Files and schema, and what happens to them."""

    def __init__(self, folder: Folder, rng: random.Random, format: str, odd_folders: Sequence[str] = ()) -> None:
        self.folder, self.format, self.odd_folders = folder, format, odd_folders
        self._rng = rng
        self._clock = _START_MS
        self.columns = {"id": "BIGINT", "x": "INT", "y": "INT", "w": "STRING"}
        self.fields = {"a": "INT"}
        self._made = 0
        for _ in range(3):
            self.append()

    @property
    def schema(self) -> str:
        nested = ", ".join(f"{name}: {type}" for name, type in self.fields.items())
        return ", ".join([*(f"{name} {type}" for name, type in self.columns.items()), f"n STRUCT<{nested}>"])

    def files(self) -> list[str]:
        """Those that Spark reads: not what a write that failed has left."""
        names = self.folder.names(f".{self.format}")
        return [name for name in names if not any(part.startswith("_") for part in name.split("/"))]

    def _held(self, name: str) -> pa.Table:
        data = pa.BufferReader(self.folder.read(name))
        return orc.read_table(data) if self.format == "orc" else pq.ParquetFile(data).read()

    # --- files

    def _values(self, type: str, count: int) -> list[Any]:
        low = self._rng.randint(0, 80)
        number = [self._rng.choice((None, *range(low, low + 6))) for _ in range(count)]
        if type == "STRING":
            return [None if n is None else f"w{n:02}" for n in number]
        if type == "DOUBLE":
            return [None if n is None else self._rng.choice((float(n), float("nan"), -0.0)) for n in number]
        return number

    def _table(self, count: int) -> pa.Table:
        data = {n: pa.array(self._values(t, count), _ARROW[t]) for n, t in self.columns.items() if n != "id"}
        inner = [pa.array(self._values(t, count), _ARROW[t]) for t in self.fields.values()]
        parents = pa.array([self._rng.random() < 0.2 for _ in range(count)], pa.bool_())
        data["n"] = pa.StructArray.from_arrays(inner, list(self.fields), mask=parents)
        self._made += 1
        return pa.table({"id": pa.array(range(self._made * 100, self._made * 100 + count), pa.int64()), **data})

    def _write(self, name: str, table: pa.Table, tick: int = 1) -> str:
        """At a time stamp of its own."""
        self._clock += tick
        data = pa.BufferOutputStream()
        if self.format == "orc":
            orc.write_table(table, data)
        else:
            pq.write_table(table, data, compression="none", use_dictionary=False, write_statistics=True)
        self.folder.write(name, data.getvalue().to_pybytes(), self._clock)
        return name

    def rows(self) -> pa.Table:
        """Those of a new file."""
        return self._table(self._rng.choice((1, 4, 12)))

    def append(self) -> str:
        name = self._rng.choice(("", "deep/", "a b/", *self.odd_folders)) + f"part-{self._made:05}.{self.format}"
        return self._write(name, self.rows(), self._rng.choice((1, 1000)))

    def _some(self) -> str | None:
        files = self.files()
        return self._rng.choice(files) if files else None

    def overwrite(self) -> str:
        """In place: the same number of rows, which for fixed widths is the same length, within the same second."""
        name = self._some()
        if name is None:
            return "nothing"
        return self._write(name, self._table(self._held(name).num_rows), self._rng.choice((1, 7, 1000)))

    def delete(self) -> str:
        name = self._some()
        if name is None:
            return "nothing"
        self.folder.delete(name)
        return name

    def rename(self) -> str:
        name, self._made = self._some(), self._made + 1
        if name is None:
            return "nothing"
        to = f"{name.rpartition('/')[0]}/moved-{self._made:05}.{self.format}".removeprefix("/")
        self.folder.rename(name, to)
        return to

    def swap(self) -> str:
        """Two files change their names with each other."""
        files = self.files()
        if len(files) < 2:
            return "nothing"
        one, other = self._rng.sample(files, 2)
        self.folder.rename(one, "_aside")
        self.folder.rename(other, one)
        self.folder.rename("_aside", other)
        return f"{one} and {other}"

    def compact(self) -> str:
        files = self.files()[:2]
        held = [self._held(file) for file in files]
        if len(files) < 2 or held[0].schema != held[1].schema:
            return "nothing"
        table = pa.concat_tables(held)
        for file in files:
            self.folder.delete(file)
        self._made += 1
        return self._write(f"compact-{self._made:05}.{self.format}", table)

    # --- schema

    def add_column(self) -> str:
        self.columns["z"] = self._rng.choice(("INT", "STRING", "DOUBLE"))
        self._rewrite_where({"z"})
        return self.columns["z"]

    def drop_column(self) -> str:
        return str(self.columns.pop("z", "nothing"))

    def widen(self) -> str:
        """``y`` becomes BIGINT; files that hold it as INT stay as they are, no other type can be read as it."""
        before, self.columns["y"] = self.columns["y"], "BIGINT"
        if before != "INT":
            self._rewrite_where({"y"})
        return f"y was {before}"

    def retype(self) -> str:
        """``y`` becomes another type; files that hold it otherwise are written anew, under the same names."""
        self.columns["y"] = self._rng.choice(("INT", "STRING", "DOUBLE"))
        self._rewrite_where({"y"})
        return self.columns["y"]

    def reorder(self) -> str:
        names = list(self.columns)
        self._rng.shuffle(names)
        self.columns = {name: self.columns[name] for name in names}
        return str(names)

    def rename_column(self) -> str:
        """``w`` is now what ``v`` was, and the other way round, if both are there."""
        if "v" not in self.columns:
            self.columns["v"] = "STRING"
            return "v is new"
        for file in self.files():
            table = self._held(file)
            swapped = {"v": "w", "w": "v"}
            self._write(file, table.rename_columns([swapped.get(name, name) for name in table.column_names]))
        return "v and w"

    def nest(self) -> str:
        self.fields = {"b": "STRING", **self.fields} if "b" not in self.fields else {"a": "INT"}
        return str(self.fields)

    def _rewrite_where(self, names: set[str]) -> None:
        for file in self.files():
            held = self._held(file).schema
            if any(name in held.names and held.field(name).type != _ARROW[self.columns[name]] for name in names):
                self._write(file, self._table(self._held(file).num_rows))
