"""Hunts in the peers' own wheels, with the same draws: does a released version still lose a row?

    make zoo

Of which rows a predicate is true is asked of the peer itself, in a way that skips nothing: its own rules for NaN and
null hold. Needs the packages of ``wheels.txt``, and no Spark.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from es_skipping.predicates.tree import (
    And,
    Column,
    Comparison,
    Constant,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Or,
    Predicate,
)
from es_skipping.testing.rows import arrow_array
from tests.zoo.hunt import Asked, Hunt, draw
from tests.zoo.ours import OURS
from tests.zoo.peer import Evaluator, Object, is_nan

_ROUNDS = 20


class Refused(Exception):
    """The peer has no such predicate."""


# --- engines that read files --------------------------------------------------------------------------------------


def sql(predicate: Predicate) -> str:
    """A predicate in the words that these engines share."""
    match predicate:
        case Constant(value):
            return str(value)
        case Not(child):
            return f"(NOT {sql(child)})"
        case And(children) | Or(children):
            return f"({(' AND ' if isinstance(predicate, And) else ' OR ').join(map(sql, children))})"
        case Comparison("<=>", left, right):
            return f"({_operand(left)} IS NOT DISTINCT FROM {_operand(right)})"
        case Comparison(comparator, left, right):
            return f"({_operand(left)} {comparator} {_operand(right)})"
        case IsIn(operand, values, negated, has_null):
            listed = [*map(_number, values), *(["NULL"] if has_null else [])]
            return f"({_operand(operand)} {'NOT ' if negated else ''}IN ({', '.join(listed)}))"
        case NullTest(operand, negated):
            return f"({_operand(operand)} IS {'NOT ' if negated else ''}NULL)"
    raise Refused(predicate)


def _operand(operand: Any) -> str:
    return operand.path[0] if isinstance(operand, Column) else _number(operand.value)


def _number(value: float | None) -> str:
    if value is None:
        return "NULL"
    if math.isnan(value) or math.isinf(value):
        return f"CAST('{'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'}' AS DOUBLE)"
    return repr(value)


class Engine(ABC):
    """An engine that reads one file of doubles, and loses a row when it filters fewer than it finds true."""

    def __init__(self) -> None:
        self._known: tuple[Sequence[Object], list[tuple[pa.Table, str]]] = ([], [])
        self._folder = Path(tempfile.mkdtemp(prefix="es-skipping-zoo-"))

    def close(self) -> None:
        shutil.rmtree(self._folder)

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        text = sql(predicate)
        if self._known[0] is not objects:
            self._known = (objects, [self._written(place, rows) for place, rows in enumerate(objects)])
        return [self.filtered(file, text) < self.true(table, file, text) for table, file in self._known[1]]

    def _written(self, place: int, rows: Object) -> tuple[pa.Table, str]:
        columns = list(rows[0])
        arrays = [arrow_array([row[column] for row in rows], column.type) for column in columns]
        table = pa.table(arrays, names=[column.path[0] for column in columns])
        path = self._folder / str(place)
        self.write(table, path)
        return table, str(path)

    def write(self, table: pa.Table, path: Path) -> None:
        pq.write_table(table, path)

    @abstractmethod
    def filtered(self, file: str, predicate: str) -> int:
        """How many rows the engine finds in a file."""

    @abstractmethod
    def true(self, table: pa.Table, file: str, predicate: str) -> int:
        """Of how many rows the engine says that the predicate is true."""


class DuckDB(Engine):
    def __init__(self) -> None:
        import duckdb

        super().__init__()
        self._connection = duckdb.connect()

    def _one(self, query: str) -> int:
        ((found,),) = self._connection.execute(query).fetchall()
        return int(found)

    def filtered(self, file: str, predicate: str) -> int:
        return self._one(f"SELECT count(*) FROM read_parquet('{file}') WHERE {predicate}")

    def true(self, table: pa.Table, file: str, predicate: str) -> int:
        self._connection.register("held", table)
        return self._one(f"SELECT coalesce(sum(CASE WHEN {predicate} THEN 1 ELSE 0 END), 0) FROM held")


class DataFusion(Engine):
    def write(self, table: pa.Table, path: Path) -> None:
        pq.write_table(table, path.with_suffix(".parquet"))

    def filtered(self, file: str, predicate: str) -> int:
        from datafusion import SessionContext

        context = SessionContext()
        context.register_parquet("t", f"{file}.parquet")
        return int(context.sql(f"SELECT count(*) AS n FROM t WHERE {predicate}").to_pydict()["n"][0])

    def true(self, table: pa.Table, file: str, predicate: str) -> int:
        from datafusion import SessionContext

        context = SessionContext()
        context.from_arrow(table, "t")
        query = f"SELECT sum(CASE WHEN {predicate} THEN 1 ELSE 0 END) AS n FROM t"
        return int(context.sql(query).to_pydict()["n"][0])


class DeltaRs(Engine):
    def write(self, table: pa.Table, path: Path) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, table, mode="overwrite")

    def _one(self, file: str, query: str) -> int:
        from deltalake import DeltaTable, QueryBuilder

        found = QueryBuilder().register("t", DeltaTable(file)).execute(query).read_all()
        return int(pa.table(found).column(0)[0].as_py())

    def filtered(self, file: str, predicate: str) -> int:
        return self._one(file, f"SELECT count(*) AS n FROM t WHERE {predicate}")

    def true(self, table: pa.Table, file: str, predicate: str) -> int:
        return self._one(file, f"SELECT sum(CASE WHEN {predicate} THEN 1 ELSE 0 END) AS n FROM t")


class ClickHouse(Engine):
    def __init__(self) -> None:
        import chdb

        super().__init__()
        self._connection = chdb.connect(":memory:")

    def _one(self, query: str) -> int:
        return int(str(self._connection.query(query, "TabSeparated")).strip())

    def filtered(self, file: str, predicate: str) -> int:
        return self._one(f"SELECT count() FROM file('{file}', Parquet) WHERE {predicate}")

    def true(self, table: pa.Table, file: str, predicate: str) -> int:
        return self._one(f"SELECT countIf({predicate}) FROM file('{file}', Parquet)")


# --- libraries that are asked about statistics --------------------------------------------------------------------


class PyIceberg:
    """Bounds of strings in a manifest without counts of nulls, which a writer need not record."""

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        from pyiceberg.conversions import to_bytes
        from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, expression_evaluator
        from pyiceberg.manifest import DataFile, FileFormat
        from pyiceberg.schema import Schema
        from pyiceberg.typedef import Record
        from pyiceberg.types import NestedField, StringType

        columns = list(objects[0][0])
        schema = Schema(*(NestedField(at, column.path[0], StringType()) for at, column in enumerate(columns, 1)))
        asked = self._expression(predicate)
        lost = []
        for rows in objects:
            held = {at: [row[c] for row in rows if row[c] is not None] for at, c in enumerate(columns, 1)}
            file = DataFile.from_args(
                file_path="f",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=len(rows),
                file_size_in_bytes=1,
                value_counts={at: len(rows) for at in held},
                lower_bounds={at: to_bytes(StringType(), min(v, key=str.encode)) for at, v in held.items() if v},
                upper_bounds={at: to_bytes(StringType(), max(v, key=str.encode)) for at, v in held.items() if v},
            )
            true = expression_evaluator(schema, asked, case_sensitive=True)
            matches = any(true(Record(*(row[column] for column in columns))) for row in rows)
            lost.append(matches and not _InclusiveMetricsEvaluator(schema, asked).eval(file))
        return lost

    def _expression(self, predicate: Predicate) -> Any:
        from pyiceberg import expressions as ice

        match predicate:
            case Not(child):
                return ice.Not(self._expression(child))
            case And(children):
                return ice.And(*map(self._expression, children))
            case Or(children):
                return ice.Or(*map(self._expression, children))
            case NullTest(Column(path), negated):
                return (ice.NotNull if negated else ice.IsNull)(path[0])
            case IsIn(Column(path), values, negated, False):
                return (ice.NotIn if negated else ice.In)(path[0], set(values))
            case Matches("starts", Column(path), prefix, _, negated):
                return (ice.NotStartsWith if negated else ice.StartsWith)(path[0], prefix)
        raise Refused(predicate)


class PyPaimon:
    """Bounds of doubles in a manifest without counts of nulls."""

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        from pypaimon.manifest.schema.simple_stats import SimpleStats
        from pypaimon.table.row.generic_row import GenericRow

        columns = list(objects[0][0])
        asked = self._predicate(predicate, {column: at for at, column in enumerate(columns)})
        lost = []
        for rows in objects:
            held = [[row[c] for row in rows if row[c] is not None and not is_nan(row[c])] for c in columns]
            low, high = (GenericRow([end(values, default=None) for values in held], []) for end in (min, max))
            stats = SimpleStats(low, high, [None] * len(columns))
            matches = any(asked.test(GenericRow([row[column] for column in columns], [])) for row in rows)
            lost.append(matches and not asked.test_by_simple_stats(stats, len(rows)))
        return lost

    def _predicate(self, predicate: Predicate, places: Mapping[Column, int]) -> Any:
        from pypaimon.common.predicate import Predicate as Paimon

        match predicate:
            case And(children) | Or(children):
                name = "and" if isinstance(predicate, And) else "or"
                return Paimon(name, None, None, [self._predicate(child, places) for child in children])
            case NullTest(Column() as column, negated):
                return Paimon("isNotNull" if negated else "isNull", places[column], column.path[0], [])
            case Comparison("=", Column() as column, Literal(value)) if value is not None and not is_nan(value):
                return Paimon("equal", places[column], column.path[0], [value])
        raise Refused(predicate)


# --- the hunt -----------------------------------------------------------------------------------------------------


class Lenient:
    """Asks only what the peer understands, and counts it."""

    def __init__(self, peer: Evaluator) -> None:
        self._peer = peer
        self.asked = 0

    def skipped(self, objects: Sequence[Object], predicate: Predicate) -> Sequence[bool]:
        try:
            found = self._peer.skipped(objects, predicate)
        except Refused:
            return [False] * len(objects)
        self.asked += len(objects)
        return found


PEERS: dict[str, tuple[str, str, Callable[[], Evaluator]]] = {
    "duckdb": ("double", "duckdb/duckdb#25521", DuckDB),
    "datafusion": ("double", "apache/datafusion#15812", DataFusion),
    "deltalake": ("double", "apache/datafusion#15812", DeltaRs),
    "pyiceberg": ("string", "apache/iceberg-python#3891", PyIceberg),
    "pypaimon": ("double", "apache/paimon#7250", PyPaimon),
    "chdb": ("double", "ClickHouse/ClickHouse#118110", ClickHouse),
}
"""By distribution: what is drawn, the bug, and the peer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=18)
    seed = parser.parse_args().seed
    code = 0
    print("| wheel | bug | cases, seconds | found |")
    print("|---|---|---|---|")
    for name, (source, bug, make) in PEERS.items():
        peer = make()
        lenient, found, begun = Lenient(peer), Hunt(), time.monotonic()

        def judge(
            asked: Asked, found: Hunt = found, name: str = name, peer: Evaluator = lenient, begun: float = begun
        ) -> None:
            ours = {kind: one.skipped(asked.objects, asked.predicate) for kind, one in OURS.items()}
            for kind, skipped in ours.items():
                wrong = [rows for rows, s, m in zip(asked.objects, skipped, asked.matching, strict=True) if s and m]
                assert not wrong, (kind, asked.predicate, wrong)
            found.judge(replace(asked, matching=[True] * len(asked.objects)), {name: peer}, begun)

        for place in range(_ROUNDS):
            draw(source, seed + place, judge)
            if found.caught:
                break
        if isinstance(peer, Engine):
            peer.close()
        catch = found.caught.get(name)
        told = f"{catch.cases:,}, {catch.seconds:.1f} | {catch.example}" if catch else f"{found.cases:,} | NOT FOUND"
        print(f"| {name} {version(name)} | {bug} | {told} |", flush=True)
        code |= catch is None
    print(f"seed {seed}; nothing of ours is caught in the same cases")
    return code


if __name__ == "__main__":
    sys.exit(main())
