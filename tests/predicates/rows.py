"""The oracle: predicates decided row by row under SQL's three-valued logic, and random ones to decide.

Written straight from Spark's semantics and sharing no code with the package but its trees, so that both must be wrong
in the same way for a test to miss it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from es_skipping.predicates.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparator,
    Comparison,
    Constant,
    Holds,
    IsIn,
    Literal,
    Matches,
    Not,
    NullTest,
    Operand,
    Or,
    Predicate,
)
from es_skipping.predicates.types import DataType, Value, parse_type

Row = Mapping[str, Value | None]

EDGES: dict[str, tuple[Any, ...]] = {
    "tinyint": (-128, -1, 0, 1, 2, 127),
    "int": (-(2**31), -7, 0, 1, 5, 16_777_217, 2**31 - 1),
    "bigint": (-(2**63), -(2**53) - 1, 0, 5, 2**53, 2**53 + 1, 2**31, 2**63 - 1),
    "float": (
        -math.inf,
        -3.4028234663852886e38,
        -1.5,
        -0.0,
        0.0,
        1.401298464324817e-45,
        0.10000000149011612,
        math.inf,
        math.nan,
    ),
    "double": (-math.inf, -1e300, -0.0, 0.0, 5e-324, 0.1, 0.10000000149011612, 2.0**53, 1e300, math.inf, math.nan),
    "decimal(5,2)": tuple(map(Decimal, ("-999.99", "-0.01", "0.00", "0.10", "5.00", "999.99"))),
    "decimal(20,4)": tuple(map(Decimal, ("-9999999999999999.9999", "0.1001", "0.1000", "5.0000", "1000.0000"))),
    "string": ("", "a", "ab", "abc", "a%b", "a\nb", "_", "b", "é", "\uff01", "\U0001f600", "a\U0001f600"),
    "binary": (b"", b"\x00", b"a", b"\xff"),
    "boolean": (False, True),
    "date": (-719162, -1, 0, 19723, 2932896),
    "timestamp": (-1, 0, 1, 86_399_999_999, 86_400_000_000, 19723 * 86_400_000_000),
    "timestamp_ntz": (-1, 0, 1, 86_399_999_999, 86_400_000_000, 19723 * 86_400_000_000),
}
COMPARATORS: tuple[Comparator, ...] = ("=", "<>", "<", "<=", ">", ">=", "<=>")
TYPES = {name: parse_type(name) for name in EDGES}
COLUMNS = {name: Column((f"c_{name}",), type_) for name, type_ in TYPES.items()}
CASTS = (
    ("tinyint", "int"),
    ("tinyint", "double"),
    ("int", "bigint"),
    ("int", "tinyint"),  # narrowing
    ("int", "double"),
    ("int", "float"),
    ("int", "decimal(20,4)"),
    ("int", "decimal(5,2)"),  # overflows to null
    ("bigint", "int"),  # narrowing
    ("bigint", "double"),
    ("float", "double"),
    ("double", "float"),  # narrowing
    ("decimal(5,2)", "decimal(20,4)"),
    ("decimal(20,4)", "decimal(5,2)"),  # rounds, and overflows to null
    ("decimal(5,2)", "double"),
    ("decimal(20,4)", "double"),
    ("int", "string"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "date"),
    ("timestamp_ntz", "date"),
    ("timestamp", "timestamp_ntz"),
)


# --- decide -------------------------------------------------------------------------------------------------------


def truth(predicate: Predicate, row: Row) -> bool | None:
    """True, false or null (None)."""
    if isinstance(predicate, Constant):
        return predicate.value
    if isinstance(predicate, Not):
        return _not(truth(predicate.child, row))
    if isinstance(predicate, And | Or):
        absorbing = isinstance(predicate, Or)
        found = [truth(child, row) for child in predicate.children]
        return absorbing if absorbing in found else None if None in found else not absorbing
    if isinstance(predicate, NullTest):
        return (value_of(predicate.operand, row) is None) != predicate.negated
    if isinstance(predicate, Holds):
        held = value_of(predicate.call, row)
        assert held is None or isinstance(held, bool)
        return _not(held) if predicate.negated else held
    if isinstance(predicate, Comparison):
        return _compare(predicate.comparator, value_of(predicate.left, row), value_of(predicate.right, row))
    if isinstance(predicate, IsIn):
        value = value_of(predicate.operand, row)
        items: list[Value | None] = [*predicate.values, *([None] if predicate.has_null else [])]
        found = [_compare("=", value, item) for item in items]
        result = True if True in found else None if None in found else False
        return _not(result) if predicate.negated else result
    if isinstance(predicate, Matches):
        text = value_of(predicate.operand, row)
        if text is None:
            return None
        assert isinstance(text, str)
        return _test(predicate, text) != predicate.negated
    raise AssertionError(f"the oracle cannot decide {predicate}")


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _rank(value: Any) -> Any:
    """A key that sorts as Spark does: NaN last, -0.0 with 0.0, strings by their UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def _compare(comparator: str, left: Any, right: Any) -> bool | None:
    if comparator == "<=>":
        return left is None and right is None if left is None or right is None else _rank(left) == _rank(right)
    if left is None or right is None:
        return None
    assert type(left) is type(right), (left, right)
    a, b = _rank(left), _rank(right)
    return bool({"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[comparator])


def _test(predicate: Matches, text: str) -> bool:
    pattern = predicate.pattern
    if predicate.test == "starts":
        return text[: len(pattern)] == pattern
    if predicate.test == "ends":
        return len(text) >= len(pattern) and text[len(text) - len(pattern) :] == pattern
    if predicate.test == "contains":
        return text.find(pattern) >= 0
    assert predicate.test == "like"
    regex, escaped = "", False
    for character in pattern:
        if escaped or character not in {"%", "_", predicate.escape}:
            regex, escaped = regex + re.escape(character), False
        elif character == predicate.escape:
            escaped = True
        else:
            regex += ".*" if character == "%" else "."
    return re.fullmatch(regex, text, re.DOTALL) is not None


def value_of(operand: Operand, row: Row) -> Value | None:
    if isinstance(operand, Column):
        return row[operand.path[0]]
    if isinstance(operand, Literal):
        return operand.value
    if isinstance(operand, Cast):
        value = value_of(operand.child, row)
        return None if value is None else cast(value, operand.child.type.name, operand.type)
    assert isinstance(operand, Call)
    arguments = [value_of(argument, row) for argument in operand.arguments]
    present = [argument for argument in arguments if argument is not None]
    if operand.name == "coalesce":
        return present[0] if present else None
    if operand.name in ("greatest", "least"):
        choose = max if operand.name == "greatest" else min
        return choose(present, key=_rank) if present else None
    if len(present) < len(arguments):
        return None
    if operand.name == "negate":
        assert isinstance(present[0], bool)
        return not present[0]
    return _computed(operand, *present)


def _computed(call: Call, x: Any, y: Any = None) -> Value | None:
    """Arithmetic as Spark does it; None also for a row that is an error."""
    of_floats, name = isinstance(x, float), call.name
    if name in ("floor", "ceil"):
        if math.isnan(x):
            return 0
        last = 2**63 - 1
        if math.isinf(x):
            return last if x > 0 else -last - 1
        return max(-last - 1, min(last, math.floor(x) if name == "floor" else math.ceil(x)))
    if name in ("divide", "integraldivide", "remainder") and y == 0:
        return None
    exact: Any
    if name == "unaryminus":
        exact = -x
    elif name == "abs":
        exact = abs(x)
    elif name in ("add", "dateadd"):
        exact = x + y
    elif name in ("subtract", "datesub", "datediff"):
        exact = x - y
    elif name == "multiply":
        exact = x * y
    elif name == "divide":
        exact = x / y if of_floats else Fraction(x) / Fraction(y)
    elif name == "integraldivide":
        exact = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    else:
        assert name == "remainder", name
        if of_floats:
            exact = math.nan if math.isinf(x) or math.isnan(x + y) else math.fmod(x, y)
        else:
            exact = (abs(x) % abs(y)) * (1 if x >= 0 else -1)
    if call.type.name == "decimal":
        scaled = Fraction(exact) * 10**call.type.scale
        rounded = math.floor(abs(scaled) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)
        if abs(rounded) >= 10**call.type.precision:
            return None
        return Decimal((int(rounded < 0), tuple(map(int, str(abs(rounded)))), -call.type.scale))
    if of_floats:
        return cast(exact, "double", call.type)
    bits = call.type.bits or 32
    wrapped: int = (exact + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    refuses = dict(call.parameters).get("evalMode") in ("ANSI", "TRY") or ("failOnError", "true") in call.parameters
    return None if refuses and wrapped != exact else wrapped


def cast(value: Any, source: str, target: DataType) -> Value | None:
    """As Spark casts without ANSI mode, in UTC."""
    if target.is_integer:
        return (int(value) + (1 << (target.bits - 1))) % (1 << target.bits) - (1 << (target.bits - 1))
    if target.name == "double":
        return float(value)
    if target.name == "float":
        try:
            single: float = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            single = math.copysign(math.inf, value)
        return single
    if target.name == "decimal":
        scaled = int(Decimal(value).scaleb(target.scale).to_integral_value("ROUND_HALF_UP"))
        if abs(scaled) >= 10**target.precision:
            return None
        return Decimal((int(scaled < 0), tuple(map(int, str(abs(scaled)))), -target.scale))
    if target.name == "string":
        return str(value)
    day = 24 * 60 * 60 * 10**6
    if target.name == "date":
        return (int(value) - int(value) % day) // day
    return int(value) * day if source == "date" else int(value)


# --- make ---------------------------------------------------------------------------------------------------------


def values(name: str) -> st.SearchStrategy[Any]:
    """Values of a type: edges mostly, so that they meet those of the literals."""
    free: dict[str, st.SearchStrategy[Any]] = {
        "tinyint": st.integers(-128, 127),
        "int": st.integers(-20, 20),
        "bigint": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(width=32),
        "double": st.floats(),
        "decimal(5,2)": st.integers(-99999, 99999).map(lambda n: Decimal(n).scaleb(-2)),
        "decimal(20,4)": st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Decimal(n).scaleb(-4)),
        "string": st.text("ab%_\\\n\uff01\U0001f600", max_size=4),
        "binary": st.binary(max_size=2),
        "date": st.integers(-3, 3),
        "timestamp": st.integers(-(10**12), 10**12),
        "timestamp_ntz": st.integers(-(10**12), 10**12),
    }
    edges = st.sampled_from(EDGES[name])
    return edges | free[name] if name in free else edges


def rows() -> st.SearchStrategy[Row]:
    return st.fixed_dictionaries({f"c_{name}": st.none() | values(name) for name in EDGES})


def _literals(name: str) -> st.SearchStrategy[Literal]:
    return (st.none() | values(name) | values(name)).map(lambda value: Literal(value, TYPES[name]))


@st.composite
def _operands(draw: st.DrawFn) -> tuple[str, Operand]:
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(EDGES)))
        return name, COLUMNS[name]
    source, target = draw(st.sampled_from(CASTS))
    return target, Cast(COLUMNS[source], parse_type(target), zone="UTC")


@st.composite
def _comparisons(draw: st.DrawFn) -> Predicate:
    name, operand = draw(_operands())
    comparator: Comparator = draw(st.sampled_from(COMPARATORS))
    other: Operand = draw(_literals(name) | _literals(name) | st.just(COLUMNS[name]))
    if isinstance(operand, Cast) and draw(st.booleans()):
        # What the cast makes of the column's own edges: where a threshold is most easily off by one.
        images = [cast(edge, operand.child.type.name, operand.type) for edge in EDGES[str(operand.child.type)]]
        other = Literal(draw(st.sampled_from(images)), operand.type)
    sides = (operand, other) if draw(st.booleans()) else (other, operand)
    return Comparison(comparator, *sides)


@st.composite
def _lists(draw: st.DrawFn) -> Predicate:
    name, operand = draw(_operands())
    items = draw(st.lists(values(name), max_size=5))
    has_null = draw(st.booleans()) or not items
    return IsIn(operand, tuple(items), draw(st.booleans()), has_null)


def _tests() -> st.SearchStrategy[Predicate]:
    pattern = st.text("ab%_\n\U0001f600", max_size=4) | st.sampled_from((r"a\%b", r"\_%", r"%\\", r"%a%", "a%b"))
    plain = st.builds(
        Matches,
        st.sampled_from(("starts", "ends", "contains")),
        st.just(COLUMNS["string"]) | _literals("string"),
        pattern,
        negated=st.booleans(),
    )
    return plain | st.builds(Matches, st.just("like"), st.just(COLUMNS["string"]), pattern, negated=st.booleans())


_MODES = ("LEGACY", "ANSI", "TRY")


def _arithmetic(name: str, depth: int) -> st.SearchStrategy[Operand]:
    """An expression of one numeric type."""
    type_ = TYPES[name]
    leaf: st.SearchStrategy[Operand] = st.just(COLUMNS[name]) | st.just(COLUMNS[name]) | _numbers(name)
    if depth == 0:
        return leaf
    inner = _arithmetic(name, depth - 1)
    mode = st.sampled_from(_MODES).map(lambda mode: (("evalMode", mode),))
    refusal = st.sampled_from(("true", "false")).map(lambda refuses: (("failOnError", refuses),))
    made = [leaf]
    if type_.name != "date":
        pair, one = st.tuples(inner, inner), st.tuples(inner)
        names = ["add", "subtract", "multiply", "remainder"]
        names += ["divide"] if type_.is_float else ["integraldivide"] if type_.is_integer else []
        if type_.name != "decimal":
            made += [st.builds(Call, st.sampled_from(names), pair, st.just(type_), mode)]
        made += [st.builds(Call, st.sampled_from(("abs", "unaryminus")), one, st.just(type_), refusal)]
    else:
        days = st.tuples(inner, _arithmetic("int", depth - 1))
        made += [st.builds(Call, st.sampled_from(("dateadd", "datesub")), days, st.just(type_))]
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    made += [st.builds(Call, st.sampled_from(("greatest", "least", "coalesce")), several, st.just(type_))]
    if name == "int":
        dates = st.tuples(_arithmetic("date", 0), _arithmetic("date", 0))
        made += [st.builds(Call, st.just("datediff"), dates, st.just(type_))]
    if name == "bigint":
        rounded = _arithmetic("double", depth - 1).map(lambda argument: (argument,))
        made += [st.builds(Call, st.sampled_from(("floor", "ceil")), rounded, st.just(type_), refusal)]
        made += [_arithmetic("int", depth - 1).map(lambda argument: Cast(argument, type_))]
    if name == "double":
        made += [
            _arithmetic(other, depth - 1).map(lambda argument: Cast(argument, type_)) for other in ("int", "float")
        ]
    if name == "decimal(20,4)":
        small = _arithmetic("decimal(5,2)", depth - 1)
        made += [
            st.builds(Call, st.just("multiply"), st.tuples(small, small), st.just(type_), mode),
            st.builds(Call, st.just("divide"), st.tuples(small, small), st.just(type_), mode),
            st.builds(Call, st.sampled_from(("add", "subtract")), st.tuples(inner, small), st.just(type_), mode),
        ]
    return st.one_of(made)


def _numbers(name: str) -> st.SearchStrategy[Operand]:
    found: st.SearchStrategy[Literal] = _literals(name)
    if name in ("int", "bigint", "double"):
        found |= st.integers(-12, 12).map(lambda n: Literal(float(n) if name == "double" else n, TYPES[name]))
    return found.filter(lambda one: not (isinstance(one.value, float) and str(one.value) == "-0.0"))


def arithmetic() -> st.SearchStrategy[Operand]:
    """Expressions of numbers and dates, to depth 4."""
    names = ("tinyint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(20,4)", "date")
    return st.tuples(st.sampled_from(names), st.integers(1, 4)).flatmap(lambda made: _arithmetic(*made))


def predicates() -> st.SearchStrategy[Predicate]:
    """Random trees over `COLUMNS`, not normal, without opaque nodes."""
    negate = Call("negate", (COLUMNS["boolean"],), TYPES["boolean"])
    leaves = (
        _comparisons()
        | _lists()
        | _tests()
        | _operands().flatmap(lambda pair: st.builds(NullTest, st.just(pair[1]), st.booleans()))
        | st.builds(Constant, st.booleans())
        | st.builds(Holds, st.just(negate), st.booleans())
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
            | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
        ),
        max_leaves=8,
    )
