"""Random predicates as SQL text, over columns like those of `tests.soundness.data`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.soundness.data import COLUMNS, TEXTS, SqlColumn, quoted

__all__ = ["Node", "Predicates", "random_predicate"]

_COMPARATORS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_CASTS = ("int", "bigint", "double", "float", "string", "decimal(20,4)", "tinyint", "date", "timestamp", "boolean")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_FOREIGN = (
    "'12'", "' 12 '", "'abc'", "''", "1", "1.5", "1e3", "-0.0", "300", "3000000000", "true", "'true'", "'2024-01-05'", "'2024-01'",
    "DATE'2024-01-05'", "TIMESTAMP'2024-01-05 00:00:00'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", "DATE'1500-02-28'",
    "CAST('NaN' AS FLOAT)", "12.50BD", "99999999999999999999", "X'61'", "'a' || 'b'", "CAST(NULL AS INT)", "upper('pur')",
)  # fmt: skip
_OF_NUMBERS = (
    "abs({c})", "(-{c})", "({c} * 2)", "({c} + 1)", "({c} - 1)", "(1 - {c})", "({c} % 7)", "pmod({c}, 7)", "floor({c})",
    "ceil({c})", "round({c}, 1)", "round({c})", "bround({c})", "sign({c})", "greatest({c}, 5)", "least({c}, 5)", "nullif({c}, 0)",
    "({c} / 2)", "sqrt({c})", "hash({c})", "hex(cast({c} AS bigint))", "cast({c} AS string)", "length(cast({c} AS string))",
    "cast(cast({c} AS double) AS float)", "try_cast(cast({c} AS string) AS int)", "if({c} > 0, {c}, NULL)", "width_bucket(cast({c} AS double), 0, 50, 5)",
)  # fmt: skip
_OF_TEXTS = (
    "upper({c})", "lower({c})", "trim({c})", "length({c})", "reverse({c})", "({c} || 'x')", "substring({c}, 1, 2)", "left({c}, 2)",
    "right({c}, 3)", "replace({c}, 'a', 'b')", "split({c}, 'r')[0]", "lpad({c}, 4, '-')", "instr({c}, 'u')", "translate({c}, 'ab', 'ba')",
    "ascii({c})", "try_cast({c} AS int)", "try_cast({c} AS date)", "regexp_replace({c}, 'P', 'p')", "concat({c}, {c})", "nullif({c}, '')",
    "initcap({c})", "md5({c})", "regexp_extract({c}, '^(P.)', 1)", "substring_index({c}, ' ', 1)", "({c} COLLATE UTF8_LCASE)", "octet_length({c})",
)  # fmt: skip
_OF_TIMES = (
    "year({c})", "month({c})", "dayofweek({c})", "to_date({c})", "cast({c} AS date)", "cast({c} AS timestamp)", "trunc({c}, 'MONTH')",
    "date_trunc('YEAR', {c})", "date_add({c}, 1)", "datediff({c}, DATE'2024-01-01')", "cast({c} AS string)", "last_day({c})",
    "date_format({c}, 'yyyy-MM')", "unix_timestamp({c})", "hour({c})", "from_utc_timestamp({c}, 'Asia/Tokyo')", "({c} + INTERVAL '1' DAY)",
    "extract(QUARTER FROM {c})", "add_months({c}, 1)", "cast({c} AS timestamp_ntz)", "cast(cast({c} AS date) AS timestamp)",
    "(year({c}) * 100 + month({c}))", "date_sub({c}, 3)", "datediff(DATE'2024-01-09', {c})", "(dayofyear({c}) + year({c}) * 1000)",
)  # fmt: skip
_OF_TWO = (
    "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} / {b})", "({a} % {b})", "({a} DIV {b})", "abs({a})", "(-{a})", "floor({a})", "ceil({a})",
    "greatest({a}, {b})", "least({a}, {b})", "coalesce({a}, {b})", "try_add({a}, {b})", "try_multiply({a}, {b})", "({a} * 2)", "({a} + 1)", "(1 - {a})",
    "if({a} > {b}, {a}, {b})", "nullif({a}, {b})",
)  # fmt: skip
_ABOUT = (
    "({c} IS DISTINCT FROM {v})", "({c} IS NOT DISTINCT FROM {v})", "equal_null({c}, {v})", "isnotnull({c})", "isnull({c})",
    "array_contains(array({v}, {w}), {c})", "exists(array({v}, {w}), e -> e = {c})", "(coalesce({c}, {v}) = {w})", "(nvl2({c}, true, false))",
    "(ifnull({c}, {v}) <> {w})", "(nullif({c}, {v}) IS NULL)", "(CASE {c} WHEN {v} THEN {w} ELSE {c} END = {w})",
    "(CASE WHEN {c} = {v} THEN true WHEN {c} IS NULL THEN NULL ELSE false END)", "((CASE WHEN {c} > {v} THEN 'a' ELSE 'b' END) = 'a')",
    "(if({c} = {v}, NULL, {c}) = {w})", "(greatest({c}, {v}) = {v})", "(least({c}, {v}) < {w})", "(NOT ({c} = {v}) <=> true)", "(struct({c}) = struct({v}))",
    "(({c} = {v}) IS NOT TRUE)", "(({c} = {v}) IS UNKNOWN)", "(({c}, 1) IN (({v}, 1), ({w}, 1)))", "({c} = {v} AND {c} <> {v})", "({c} = {v} OR {c} IS NULL)",
    "({c} IN ({v}, NULL))", "({c} NOT IN ({v}, NULL))", "(NOT ({c} IN ({v}, {w})))", "(NOT ({c} BETWEEN {v} AND {w}))", "(boolean({c} <=> {v}))",
    "(array({c}, {v})[0] = {w})", "(map('k', {c})['k'] = {v})", "(named_struct('f', {c}).f > {v})", "(element_at(array({c}), 1) <= {v})",
)  # fmt: skip
_OF_NESTED = (
    "(n IS NULL)", "(n IS NOT NULL)", "(n.deep IS NULL)", "(n.deep IS NOT NULL AND n.x IS NULL)", "(n.deep.y IS NULL)",
    "(n.deep = struct('a' AS y))", "(n <=> NULL)", "(coalesce(n.x, 5) = 5)", "(size(array(n.x)) = 1)",
)  # fmt: skip

_SHARE_OF_MORE = 1 / 6


@dataclass(frozen=True)
class Node:
    """A predicate as pieces of text with smaller predicates in between, so that a failing one can be made smaller."""

    pieces: tuple[str | Node, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))

    def smaller(self) -> Iterator[Node]:
        """Simpler predicates made of parts of this one, the simplest first."""
        children = [piece for piece in self.pieces if isinstance(piece, Node)]
        yield from children
        for at, piece in enumerate(self.pieces):
            if isinstance(piece, Node):
                for less in (*map(_word, ("true", "false")), *piece.smaller()):
                    if str(less) != str(piece):
                        yield Node((*self.pieces[:at], less, *self.pieces[at + 1 :]))


def _word(text: str) -> Node:
    return Node((text,))


class Predicates:
    """Draws predicates over some columns.

    Parameters
    ----------
    rng
        Decides everything.
    columns
        What they may name.
    more
        Draws leaves about further columns, one leaf in six.
    """

    def __init__(
        self,
        rng: random.Random,
        columns: Sequence[SqlColumn] = COLUMNS,
        more: Callable[[random.Random], str] | None = None,
    ) -> None:
        self._rng = rng
        self._more = more
        self._columns = tuple(columns)
        self._texts = self._of("string")
        self._numbers = self._of(*_NUMBERS)
        self._times = self._of(*_TIMES)
        self._nested = all(name in {c.sql for c in columns} for name in ("n.x", "n.deep.y"))
        self._points = all(name in {c.sql for c in columns} for name in ("lat", "lon"))

    def _of(self, *names: str) -> tuple[SqlColumn, ...]:
        return tuple(c for c in self._columns if c.sql_type.partition("(")[0] in names)

    def draw(self, depth: int = 3) -> Node:
        """One boolean expression."""
        rng = self._rng
        if depth <= 0 or rng.random() >= 0.45:
            return _word(self._leaf())
        a, b, c = (self.draw(depth - 1) for _ in range(3))
        shape = rng.random()
        if shape < 0.4:
            return Node(("(", a, " AND ", b, ")"))
        if shape < 0.75:
            return Node(("(", a, " OR ", b, ")"))
        if shape < 0.93:
            return Node(("(NOT ", a, ")"))
        forms: tuple[tuple[str | Node, ...], ...] = (
            ("(CASE WHEN ", a, " THEN ", b, " ELSE ", c, " END)"),
            ("(CASE WHEN ", a, " THEN ", b, " END)"),
            ("if(", a, ", ", b, ", ", c, ")"),
            ("coalesce(", a, ", ", b, ")"),
            ("((", a, ") <=> (", b, "))"),
            ("((", a, ") = (", b, "))"),
            ("((", a, ") <> (", b, "))"),
            ("((", a, ") IS NULL)"),
            ("((", a, ") = true)"),
            ("((", a, ") IS NOT FALSE)"),
            ("nullif(", a, ", ", b, ")"),
            ("(", a, " IN (", b, ", ", c, "))"),
        )
        return Node(rng.choice(forms))

    def _literal(self, column: SqlColumn) -> str:
        rng, chance = self._rng, self._rng.random()
        if chance < 0.03:
            return "NULL"
        if chance < 0.06:
            return rng.choice(_FOREIGN)
        if chance < 0.12:  # of another column's type, where SQL has a comparison for the two
            alike = (
                self._numbers
                if column in self._numbers
                else self._times
                if column in self._times
                else self._of(column.sql_type)
            )
            other = rng.choice(alike or (column,))
            return other.literal(rng.choice(other.domain))
        return column.literal(rng.choice(column.domain))

    def _leaf(self) -> str:
        rng = self._rng
        if self._more is not None and rng.random() < _SHARE_OF_MORE:
            return self._more(rng)
        column = rng.choice(self._columns)
        name, shape = column.sql, rng.random()
        if shape < 0.33:
            comparator, literal = rng.choice(_COMPARATORS), self._literal(column)
            return f"({name} {comparator} {literal})" if rng.random() < 0.8 else f"({literal} {comparator} {name})"
        if shape < 0.42:
            values = ", ".join(self._literal(column) for _ in range(rng.choice((1, 2, 3, 12))))
            return f"({name} {rng.choice(('IN', 'NOT IN'))} ({values}))"
        if shape < 0.5:
            return f"({name} {rng.choice(('', 'NOT '))}BETWEEN {self._literal(column)} AND {self._literal(column)})"
        if shape < 0.57:
            return f"({name} IS {rng.choice(('', 'NOT '))}NULL)"
        if shape < 0.72 and self._texts:
            return self._text_leaf()
        if shape < 0.75 and self._points:
            return self._window()
        if shape < 0.78:
            return rng.choice((*self._flags(), "true", "false", *(_OF_NESTED if self._nested else ())))
        if shape < 0.81:
            return f"({name} {rng.choice(_COMPARATORS)} {rng.choice(self._of(column.sql_type.partition('(')[0])).sql})"
        if shape < 0.88:
            return (
                rng.choice(_ABOUT)
                .replace("{c}", name)
                .replace("{v}", self._literal(column))
                .replace("{w}", self._literal(column))
            )
        return self._expression_leaf(column)

    def _flags(self) -> Iterator[str]:
        for column in self._columns:
            if column.sql_type == "boolean":
                yield from (column.sql, f"(NOT {column.sql})", f"({column.sql} = false)")
            elif column.sql_type in ("float", "double"):
                yield from (f"isnan({column.sql})", f"(NOT isnan({column.sql}))")

    def _pattern(self, column: SqlColumn) -> str:
        rng = self._rng
        text = rng.choice([value for value in column.domain if value is not None])
        cut = rng.randint(0, len(text))
        return rng.choice(
            (text[:cut], text[cut:], text, text[:cut] + rng.choice("%_ax") + text[cut:], rng.choice(TEXTS))
        )

    def _text_leaf(self) -> str:
        rng = self._rng
        column = rng.choice(self._texts)
        piece = self._pattern(column)
        plain = quoted(piece)
        like = (
            piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            if rng.random() < 0.7
            else piece.replace("\\", "")
        )
        wild = rng.choice(("{}%", "%{}", "%{}%", "{}", "_{}", "{}_", "{}%{}", "_%{}")).replace("{}", like)
        other = quoted("%" + like)
        negated = rng.choice(("", "", "NOT "))
        regex = rng.choice(
            (
                "^Pur",
                "ley$",
                "a.b",
                "^a",
                "^Pur(l|w)",
                "[ab]",
                "^(?i)pur",
                "^$",
                "x{40}",
                "^ab?",
                "^Pur|Man",
                "^P\\w+y$",
                "^\\s",
                "^(Pur)",
            )
        )
        return rng.choice(
            (
                f"({column.sql} {negated}LIKE {quoted(wild)})",
                f"({column.sql} {negated}LIKE {quoted(wild)})",
                f"({negated}startswith({column.sql}, {plain}))",
                f"({negated}endswith({column.sql}, {plain}))",
                f"({negated}contains({column.sql}, {plain}))",
                f"({negated}{column.sql} RLIKE {quoted(regex)})",
                f"({column.sql} {negated}ILIKE {quoted(wild)})",
                f"({column.sql} {negated}LIKE ANY ({quoted(wild)}, {other}))",
                f"({column.sql} {negated}LIKE ALL ({quoted(wild)}, {other}))",
                f"({column.sql} {negated}LIKE {quoted(piece.replace('!', ''))} ESCAPE '!')",
            )
        )

    def _window(self) -> str:
        rng = self._rng
        lat, lon, size = 50 + rng.random() * 5, -4 + rng.random() * 5, rng.choice((0.1, 0.5, 2.0))
        return f"(lat BETWEEN {lat}D AND {lat + size}D AND lon >= {lon}D AND lon < {lon + size}D)"

    def expression(self) -> str:
        """Something computed from a column; an index may be made of it."""
        rng = self._rng
        pools = [
            (pool, forms)
            for pool, forms in ((self._numbers, _OF_NUMBERS), (self._texts, _OF_TEXTS), (self._times, _OF_TIMES))
            if pool
        ]
        if not pools:
            return f"coalesce({rng.choice(self._columns).sql}, NULL)"
        pool, forms = rng.choice(pools)
        return rng.choice(forms).replace("{c}", rng.choice(pool).sql)

    def _arithmetic(self, depth: int) -> str:
        """Nested arithmetic over columns and constants."""
        rng = self._rng
        if depth == 0:
            column = rng.choice(self._numbers)
            constant = str(rng.choice((-3, 0, 2, 7, 100, "0.5D", "1.25BD", "127", "2147483647")))
            return column.sql if rng.random() < 0.7 else constant if rng.random() < 0.7 else self._literal(column)
        form = rng.choice(_OF_TWO)
        return form.replace("{a}", self._arithmetic(depth - 1)).replace("{b}", self._arithmetic(rng.randrange(depth)))

    def _expression_leaf(self, column: SqlColumn) -> str:
        rng, shape = self._rng, self._rng.random()
        comparator = rng.choice(_COMPARATORS)
        if shape < 0.15 and self._numbers:
            number = rng.choice(self._numbers)
            return f"(try_cast({number.sql} AS {rng.choice(_CASTS[:7])}) {comparator} {rng.choice((0, 1, 5, 12, 40))})"
        if shape < 0.3:
            return f"(try_cast({column.sql} AS {rng.choice(_CASTS)}) {comparator} {rng.choice(_FOREIGN)})"
        if shape < 0.4 and self._times:
            return f"(cast({rng.choice(self._times).sql} AS {rng.choice(('date', 'timestamp', 'string'))}) {comparator} '2024-01-05')"
        if shape < 0.65 and self._numbers:
            other = rng.choice((-3, 0, 5, 12, 40, 300, "1.5", self._literal(rng.choice(self._numbers))))
            return f"({self._arithmetic(rng.randint(1, 4))} {comparator} {other})"
        if shape < 0.9:
            return f"({self.expression()} {comparator} {rng.choice((*_FOREIGN, self._literal(column), *map(quoted, rng.sample(TEXTS, 3))))})"
        return f"({self.expression()} IS {rng.choice(('', 'NOT '))}NULL)"


def random_predicate(rng: random.Random, columns: Sequence[SqlColumn] = COLUMNS) -> Node:
    """One boolean expression in SQL; ``rng`` decides everything."""
    return Predicates(rng, columns).draw()
