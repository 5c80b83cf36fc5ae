"""Two answers over tables of identities: what both skip, compared with sets of keys."""

from __future__ import annotations

import random

import numpy as np

from es_skipping.stores.protection.agreement import Agreement
from es_skipping.stores.selection import KEY_BYTES, KeyTable, Selection, Selections
from tests.stores.contract.examples import keys


def _key(number: int) -> bytes:
    """The first eight bytes are alike, as somebody could arrange; some keys end in zeros."""
    return b"the same" + number.to_bytes(4, "little") + b"\0" * 4


def _table(rng: random.Random) -> KeyTable:
    numbers = rng.sample(range(40), rng.randrange(1, 30))
    live = np.array([rng.random() < 0.8 for _ in numbers])
    return KeyTable(b"".join(map(_key, numbers)), live)


def _selection(table: KeyTable, rng: random.Random) -> Selection:
    return Selection.of(table, np.array([rng.random() < rng.choice((0.2, 0.9)) for _ in range(len(table))]))


def _answer(tables: list[KeyTable], rng: random.Random) -> bytes | Selection | Selections:
    shape = rng.randrange(3)
    if shape == 0:
        return _selection(rng.choice(tables), rng).keys()
    if shape == 1:
        return _selection(rng.choice(tables), rng)
    numbers = list(range(40))
    rng.shuffle(numbers)
    halves = [KeyTable(b"".join(map(_key, part)), np.ones(20, np.bool_)) for part in (numbers[:20], numbers[20:])]
    return Selections(tuple(_selection(table, rng) for table in halves))


def _skip(found: bytes | Selection | Selections) -> set[bytes]:
    return keys(found if isinstance(found, bytes) else found.keys())


def test_both_is_the_intersection() -> None:
    rng = random.Random(25)
    agreement = Agreement()
    tables = [_table(rng) for _ in range(12)]
    same = less = 0
    for _ in range(2_000):
        claimed, proved = _answer(tables, rng), _answer(tables, rng)
        found = agreement.both(claimed, proved)
        assert _skip(found) == _skip(claimed) & _skip(proved)
        if _skip(claimed) <= _skip(proved):
            assert found is claimed
            same += 1
        less += bool(_skip(found))
    assert same > 50
    assert less > 500
    assert len(_key(1)) == KEY_BYTES
