"""Every predicate of a domain up to depth 2, as SQL.

A leaf has depth 1: a comparison with a literal or another column, on either side, IN and NOT IN lists, BETWEEN, a test
for NULL, a test of a string. Depth 2 is what NOT, IS TRUE and their like make of a leaf, and AND and OR of two leaves,
each side and the whole with and without NOT.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Final

from tests.world.domains import Domain

__all__ = ["leaves", "predicates"]

COMPARATORS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")
TRUTHS: Final = ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN")
MOST_LISTED: Final = 3


def leaves(domain: Domain) -> tuple[list[str], list[str]]:
    """The leaves that are combined with each other, and the others.

    Combined are those of which the others are spellings or unions. Spark's parser itself reads ``<>`` and ``NOT IN`` as
    NOT of ``=`` and ``IN``, and each leaf is combined with and without NOT.
    """
    combined: list[str] = []
    others: list[str] = []
    for column in domain.columns:
        literals = domain.literals[column]
        for sign, literal in product(COMPARATORS, literals):
            spelled = sign == "<>" or (literal == "NULL" and sign not in ("=", "<=>"))
            (others if spelled else combined).append(f"{column} {sign} {literal}")
        combined += [f"{column} IS NULL", f"{column} IS NOT NULL"]
        others += [f"{literal} {sign} {column}" for sign in COMPARATORS for literal in literals]
        for count in range(1, MOST_LISTED + 1):
            for listed in combinations(literals, count):
                few = count == 2 and "NULL" not in listed
                (combined if few else others).append(f"{column} IN ({', '.join(listed)})")
                others.append(f"{column} NOT IN ({', '.join(listed)})")
        ends = list(product(literals, repeat=2))
        others += [f"{column} {word} {low} AND {high}" for word in ("BETWEEN", "NOT BETWEEN") for low, high in ends]
        if domain.columns[column] == "STRING":
            for pattern in domain.patterns:
                (combined if len(pattern) > 1 else others).append(f"{column} LIKE '{pattern}'")
            for test, needle in product(("startswith", "endswith", "contains"), domain.needles):
                (combined if needle else others).append(f"{test}({column}, '{needle}')")
    for left, right in domain.compared:
        combined += [f"{left} {sign} {right}" for sign in COMPARATORS if sign != "<>"]
        others += [f"{left} <> {right}", *(f"{right} {sign} {left}" for sign in COMPARATORS)]
    combined += domain.more
    return combined, others


def _of_one(leaf: str) -> Iterator[str]:
    yield leaf
    yield f"NOT ({leaf})"
    yield from (f"({leaf}) {truth}" for truth in TRUTHS)


def _of_two(leaves: Sequence[str]) -> Iterator[str]:
    for one, other in combinations(leaves, 2):
        for word in ("AND", "OR"):
            yield f"({one}) {word} ({other})"
            yield f"NOT (({one}) {word} ({other}))"
            yield f"({one}) {word} NOT ({other})"
            yield f"NOT ({one}) {word} ({other})"


def predicates(domain: Domain, sample: int | None = None, seed: int = 1) -> list[str]:
    """The predicates of a domain; given a number, so many of them, drawn by the seed."""
    combined, others = leaves(domain)
    found = [text for leaf in [*combined, *others] for text in _of_one(leaf)]
    found += _of_two(combined)
    found = list(dict.fromkeys(found))
    return found if sample is None or sample >= len(found) else random.Random(seed).sample(found, sample)
