"""Encodes values of each SQL type so that Elasticsearch orders and compares them as Spark does.

Every type has an *order key*: a number that keeps the order of the values. Ranges are compared by it:

=========================================  ==================  ======================================================
SQL type                                   fields              order key
=========================================  ==================  ======================================================
integers, boolean, date, timestamps        ``long_range``      the number itself (days, microseconds)
decimal of up to 18 digits                 ``long_range``      the unscaled number
decimal of more digits                     ``ip_range``        the unscaled number + 2^127: an address has 128 bits
float, double                              ``double_range``    itself; infinities open the range
string, binary                             ``ip_range``        the 16 bytes after the dataset's common prefix
=========================================  ==================  ======================================================

All but the last are exact. The key of a string is only monotone: different values can share one, so equal keys
prove nothing and different keys prove the order.
"""

from __future__ import annotations

import builtins
import math
import struct
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias

from es_skipping.clauses.questions import Range
from es_skipping.predicates.types import DataType, Value

__all__ = ["WINDOW", "Bytes", "Codec", "Keys", "Unanswerable", "codec_of", "common_prefix"]

Key: TypeAlias = int | float
Keys: TypeAlias = tuple[Key | None, Key | None]
"""A closed range of order keys; None leaves a side open."""

_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_ADDRESS_MAX: Final = 2**128 - 1
_DOUBLE_MAX: Final = 1.7976931348623157e308
_MAX_LONG_DIGITS: Final = 18
WINDOW: Final = 16
"""Bytes of a string that its order key holds."""
_LOWEST: Final = bytes(WINDOW)
_HIGHEST: Final = b"\xff" * WINDOW
_MAX_PREFIX: Final = 512
_SEPARATORS: Final = frozenset(b"/\\:;,|#=_-. ")
_MAX_TERM: Final = 32_766
"""Bytes of one term, the limit of Lucene."""


class Unanswerable(Exception):
    """Elasticsearch cannot answer the question for this type: it proves nothing, so nothing is skipped."""


class Codec(ABC):
    """One type's order keys and terms.

    Attributes
    ----------
    order
        Type of field that holds an order key.
    exact
        Whether different values have different order keys.
    shown
        Type of field in which people read a value.
    """

    order: Literal["long", "double", "ip"]
    exact: bool = True
    shown: str

    @abstractmethod
    def key(self, value: Value) -> Key:
        """The order key of a stored value."""

    @abstractmethod
    def bounds(self, asked: Range) -> Keys | None:
        """The closed range of keys that a range of values can have; None where it holds nothing.

        A range between two neighbours, both excluded, has its low key above its high one.
        """

    @abstractmethod
    def term(self, value: Value) -> Any:
        """A value as the exact term of the field ``equal`` (see `es_skipping.stores.elasticsearch.fields`); None where
        no stored value can be equal to it."""

    @abstractmethod
    def value(self, term: Any) -> Value:
        """The value of a term."""

    @abstractmethod
    def show(self, value: Value) -> Any:
        """The value that people read; None if the field cannot hold it."""

    def encode(self, low: Key | None, high: Key | None) -> dict[str, Any]:
        """A closed range of keys, as a range field holds it and a range query asks it."""
        made: dict[str, Any] = {}
        if low is not None:
            made["gte"] = self.encode_key(low)
        if high is not None:
            made["lte"] = self.encode_key(high)
        return made

    def encode_key(self, key: Key) -> Any:
        """One key as the order field holds it."""
        return key

    def order_of(self, value: Value) -> Any:
        """The order key of a stored value as the order field holds it."""
        return self.encode_key(self.key(value))

    def interval(self, low: Value, high: Value) -> dict[str, Any]:
        """What lies between two stored values, as a range field holds it."""
        return self.encode(self.key(low), self.key(high))

    def decode(self, stored: dict[str, Any]) -> tuple[Value, Value]:
        """The two ends that `encode` was given, as values; only where keys are exact."""
        raise NotImplementedError


@lru_cache(maxsize=1024)  # one for each index of the datasets in use, asked for with each object
def codec_of(type: DataType, prefix: bytes = b"") -> Codec:
    """The codec of a type.

    Parameters
    ----------
    prefix
        Of strings and binary: what most values of this index begin with. It must not change while metadata made with it
        is in use; it need not be true of every value.

    Raises
    ------
    Unanswerable
        A type whose order is not known.
    """
    if type.name == "decimal":
        return _Numbers(type, "long" if type.precision <= _MAX_LONG_DIGITS else "ip")
    if type.is_float:
        return _Doubles()
    if type.name in ("string", "binary"):
        return Bytes(type, prefix)
    if type.supported:
        return _Numbers(type, "long")
    raise Unanswerable(f"type {type} has no known order")


def _is_empty(asked: Range) -> bool:
    low, high = asked.low, asked.high
    if low is None or high is None:
        return False
    return low > high or (low == high and (asked.low_open or asked.high_open))  # type: ignore[operator]


class _Numbers(Codec):
    """Whole numbers, and what is one when scaled: decimals, dates, timestamps, booleans."""

    def __init__(self, type: DataType, order: Literal["long", "ip"]) -> None:
        self.order = order
        self._type = type
        self._held: builtins.type = {"decimal": Decimal, "boolean": bool}.get(type.name, int)
        self._offset = 0 if order == "long" else 2**127
        self._min, self._max = (_LONG_MIN, _LONG_MAX) if order == "long" else (0, _ADDRESS_MAX)
        shown = {
            "decimal": "double",
            "boolean": "boolean",
            "date": "date",
            "timestamp": "date",
            "timestamp_ntz": "date",
        }
        self.shown = shown.get(type.name, "long")

    def _scaled(self, value: Value) -> tuple[int, bool]:
        """A value's number rounded down, and whether that is exact."""
        if builtins.type(value) is not self._held:
            raise Unanswerable(f"{value!r} is not a value of type {self._type}")
        if not isinstance(value, Decimal):
            return int(value), True
        if not value.is_finite():
            raise Unanswerable(f"{value!r} is not finite")
        exact = Fraction(value) * Fraction(10) ** self._type.scale + self._offset
        return math.floor(exact), exact.denominator == 1

    def key(self, value: Value) -> int:
        if builtins.type(value) is int and self._held is int and self._min <= value <= self._max:
            return value
        key, whole = self._scaled(value)
        if not whole or not self._min <= key <= self._max:
            raise Unanswerable(f"{value!r} is not a value of type {self._type}")
        return key

    def bounds(self, asked: Range) -> Keys | None:
        low, high = self._min, self._max
        if asked.low is not None:
            low, whole = self._scaled(asked.low)
            low += asked.low_open or not whole
        if asked.high is not None:
            high, whole = self._scaled(asked.high)
            high -= asked.high_open and whole
        if _is_empty(asked) or low > self._max or high < self._min:
            return None
        return None if low <= self._min else low, None if high >= self._max else high

    def encode_key(self, key: Key) -> Any:
        return key if self.order == "long" else _address(int(key))

    def term(self, value: Value) -> Any:
        key, whole = self._scaled(value)
        return self.encode_key(key) if whole and self._min <= key <= self._max else None

    def value(self, term: Any) -> Value:
        number = (term if self.order == "long" else _address_number(term)) - self._offset
        if self._type.name == "decimal":
            return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -self._type.scale))
        return bool(number) if self._type.name == "boolean" else int(number)

    def decode(self, stored: dict[str, Any]) -> tuple[Value, Value]:
        return self.value(stored["gte"]), self.value(stored["lte"])

    def show(self, value: Value) -> Any:
        match self._type.name:
            case "decimal":
                return format(value, "f")
            case "date":
                return _calendar(int(value) * 86_400_000_000)[:10] or None
            case "timestamp" | "timestamp_ntz":
                return _calendar(int(value)) or None
        return value


def _calendar(microseconds: int) -> str:
    """A moment as people write it; empty outside the years 1 to 9999, which only the range holds."""
    try:
        return (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")
    except OverflowError:
        return ""


class _Doubles(Codec):
    """float and double: -0.0 is 0.0, infinities are values, NaN is none."""

    order = "double"
    shown = "double"

    def key(self, value: Value) -> float:
        if not isinstance(value, float) or math.isnan(value):
            raise Unanswerable(f"{value!r} is not a double")
        return value + 0.0

    def bounds(self, asked: Range) -> Keys | None:
        low = -math.inf if asked.low is None else self.key(asked.low)
        high = math.inf if asked.high is None else self.key(asked.high)
        low_open = asked.low is not None and asked.low_open  # a side without a bound is open to infinity, which is in
        high_open = asked.high is not None and asked.high_open
        if _is_empty(asked) or (low == math.inf and low_open) or (high == -math.inf and high_open):
            return None
        if low_open:
            low = math.nextafter(low, math.inf) + 0.0
        if high_open:
            high = math.nextafter(high, -math.inf) + 0.0
        return None if low == -math.inf else low, None if high == math.inf else high

    def encode(self, low: Key | None, high: Key | None) -> dict[str, Any]:
        # JSON has no infinity; beyond the greatest finite double there is nothing else.
        made: dict[str, Any] = {}
        if low == math.inf:
            made["gt"] = _DOUBLE_MAX
        elif low is not None and low != -math.inf:
            made["gte"] = low
        if high == -math.inf:
            made["lt"] = -_DOUBLE_MAX
        elif high is not None and high != math.inf:
            made["lte"] = high
        return made

    def decode(self, stored: dict[str, Any]) -> tuple[Value, Value]:
        low = math.inf if "gt" in stored else float(stored.get("gte", -math.inf))
        high = -math.inf if "lt" in stored else float(stored.get("lte", math.inf))
        return low, high

    def term(self, value: Value) -> Any:
        return _sortable(self.key(value))

    def value(self, term: Any) -> Value:
        bits = int(term)
        return float(struct.unpack(">d", struct.pack(">q", bits ^ ((bits >> 63) & _LONG_MAX)))[0])

    def show(self, value: Value) -> Any:
        return float(value) if math.isfinite(value) else None  # type: ignore[arg-type]


def _sortable(value: float) -> int:
    """A double as a long of the same order: the bits of negative numbers are inverted."""
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return bits ^ ((bits >> 63) & _LONG_MAX)


class Bytes(Codec):
    """string and binary, in the order of their bytes."""

    order = "ip"
    exact = False
    shown = "keyword"

    def __init__(self, type: DataType, prefix: bytes) -> None:
        self._text = type.name == "string"
        self.prefix = prefix

    def raw(self, value: Value) -> bytes:
        """A value's bytes."""
        if self._text and isinstance(value, str):
            try:
                return value.encode("utf-8")
            except UnicodeEncodeError:
                raise Unanswerable("a string with half a surrogate pair is not UTF-8") from None
        if not self._text and isinstance(value, bytes):
            return value
        raise Unanswerable(f"{value!r} is not a {'string' if self._text else 'binary'}")

    def key(self, value: Value) -> int:
        return self.window(self.raw(value))

    def window(self, raw: bytes) -> int:
        """The order key of these bytes."""
        return int.from_bytes(self._window(raw), "big")

    def _window(self, raw: bytes) -> bytes:
        if raw.startswith(self.prefix):
            return raw[len(self.prefix) : len(self.prefix) + WINDOW].ljust(WINDOW, b"\0")
        return _LOWEST if raw < self.prefix else _HIGHEST

    def order_of(self, value: Value) -> str:
        return _written(self._window(self.raw(value)))

    def interval(self, low: Value, high: Value) -> dict[str, Any]:
        return {"gte": self.order_of(low), "lte": self.order_of(high)}

    def bounds(self, asked: Range) -> Keys | None:
        low = None if asked.low is None else self.window(self.raw(asked.low))
        high = None if asked.high is None else self.window(self.raw(asked.high))
        if _is_empty(asked):
            return None
        return low or None, None if high == _ADDRESS_MAX else high

    def sharp(self, value: Value) -> bool:
        """Whether the value fits the window, so that the keys alone tell (nearly) what is less than it."""
        raw = self.raw(value)
        return raw.startswith(self.prefix) and len(raw) < len(self.prefix) + WINDOW

    def encode_key(self, key: Key) -> Any:
        return _address(int(key))

    def term(self, value: Value) -> Any:
        raw = self.raw(value)
        if len(raw) > (_MAX_TERM if self._text else _MAX_TERM // 2):
            return None
        return value if self._text else raw.hex()

    def value(self, term: Any) -> Value:
        return str(term) if self._text else bytes.fromhex(term)

    def show(self, value: Value) -> Any:
        return self.term(value)


def _address(number: int) -> str:
    return _written(number.to_bytes(16, "big"))


def _written(address: bytes) -> str:
    return address.hex(":", 2)


def _address_number(address: str) -> int:
    """Of an address in any spelling: an aggregation writes it as short as it can."""
    number = ip_address(address)
    return int(number) if number.version == 6 else 0xFFFF << 32 | int(number)


def common_prefix(values: list[bytes]) -> bytes:
    """The common beginning of an index's values, which their keys leave out; empty if it would not help.

    It ends at a separator, because values seen later are more likely to share ``https://host/`` than half a word.

    Examples
    --------
    >>> common_prefix([b"s3://bucket/a/one", b"s3://bucket/a/other"])
    b's3://bucket/a/'
    """
    if len(set(values)) < 2 or max(map(len, values)) <= WINDOW:
        return b""
    ordered = sorted(values)
    few = len(ordered) // 20  # a few that begin with something else do not matter
    first, last = ordered[few], ordered[-1 - few]
    length = 0
    while length < min(len(first), len(last), _MAX_PREFIX) and first[length] == last[length]:
        length += 1
    while length and first[length - 1] not in _SEPARATORS:
        length -= 1
    return first[:length]
