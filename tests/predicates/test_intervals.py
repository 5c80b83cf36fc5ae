"""Intervals of exact numbers at 0, at the infinities, and where a product or quotient comes from."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from es_skipping.predicates.intervals import INFINITY, UNDONE, Interval, times

ENDS = (-INFINITY, *map(Fraction, (-2, -1, 0, 1, 2)), INFINITY)
INTERVALS = [Interval(low, high) for low, high in product(ENDS, repeat=2) if low < high or low == high != abs(INFINITY)]
INTERVALS = [one for one in INTERVALS if one.low < INFINITY and one.high > -INFINITY]
NUMBERS = [Fraction(n, 2) for n in range(-6, 7)]


def within(number: Fraction, interval: Interval) -> bool:
    return interval.low <= number <= interval.high


def test_products_lie_where_they_are_said_to_lie() -> None:
    for x, y in product(INTERVALS, repeat=2):
        found = times(x, y)
        for one, other in product(NUMBERS, repeat=2):
            if within(one, x) and within(other, y):
                assert within(one * other, found), (x, y, one, other)


def test_products_are_no_wider_than_they_must_be() -> None:
    two, three = Fraction(2), Fraction(3)
    assert times(Interval(two, three), Interval(Fraction(-1), Fraction(-1))) == Interval(-three, -two)
    assert times(Interval(), Interval(Fraction(0), Fraction(0))) == Interval(Fraction(0), Fraction(0))
    assert times(Interval(two), Interval(Fraction(-1), three)) == Interval()
    assert times(Interval(two), Interval(two, three)) == Interval(Fraction(4), INFINITY)


def test_what_a_product_or_quotient_comes_from() -> None:
    for result, other in product(INTERVALS, repeat=2):
        factor = UNDONE["multiply"](0, result, [other])
        dividend, divisor = (UNDONE["divide"](at, result, [other]) for at in (0, 1))
        for one, two in product(NUMBERS, repeat=2):
            if within(two, other) and within(one * two, result):
                assert any(within(one, found) for found in factor), (result, other, one, two)
            if within(two, other) and two and within(one / two, result):
                assert any(within(one, found) for found in dividend), (result, other, one, two)
            if within(two, other) and one and within(two / one, result):
                assert any(within(one, found) for found in divisor), (result, other, one, two)


def test_what_an_absolute_number_comes_from() -> None:
    undo = UNDONE["abs"]
    three = Fraction(3)
    assert undo(0, Interval(-INFINITY, three), []) == (Interval(-three, three),)
    assert undo(0, Interval(Fraction(0), three), []) == (Interval(-three, three),)
    assert undo(0, Interval(Fraction(1), three), []) == (Interval(-three, Fraction(-1)), Interval(Fraction(1), three))
