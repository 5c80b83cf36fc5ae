"""The workload without Spark: queries, templates, files, and the diagnosis."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal

import pytest

from es_skipping.layout.workload.diagnosis import diagnose
from es_skipping.layout.workload.filters import is_statement
from es_skipping.layout.workload.log import QueryLog, split_statements
from es_skipping.layout.workload.templates import Template, zipf
from es_skipping.predicates.tree import NEVER, And, NullTest, Opaque, Or
from es_skipping.workload.queries import Query
from tests.layout.shop import LOG, REVENUE, above, product


def test_a_query_is_the_predicates_that_no_other_implies() -> None:
    query = Query(And((above(21), above(32), product("shoes"), NullTest(REVENUE, negated=True), Opaque("?"))))
    assert set(query.items) == {above(32), product("shoes")}
    assert Query(Or((above(32), product("shoes")))).items == (Or((above(32), product("shoes"))),)
    assert Query(Opaque("?")).items == ()


def test_a_log_leaves_out_what_no_row_can_satisfy() -> None:
    log = QueryLog([*LOG, NEVER, above(3)])
    assert len(log) == 4
    assert log[:2] == LOG[:2] or list(log[:2]) == LOG[:2]
    assert isinstance(log[:2], QueryLog)
    assert repr(log) == "QueryLog(4 queries)"


@pytest.mark.parametrize(("share", "sizes"), [(0.2, (8, 2)), (0.01, (9, 1)), (0.99, (1, 9))])
def test_the_newest_queries_are_held_out(share: float, sizes: tuple[int, int]) -> None:
    log = QueryLog([above(number) for number in range(10)])
    first, held = log.split(share)
    assert (len(first), len(held)) == sizes
    assert [*first, *held] == list(log)
    with pytest.raises(ValueError, match="between 0 and 1"):
        log.split(1.0)


def test_files_of_statements() -> None:
    assert split_statements("x > 1;  \n-- no\nSELECT a\nFROM t WHERE s = ';' ;\n") == [
        "x > 1",
        "SELECT a\nFROM t WHERE s = ';'",
    ]
    assert split_statements("") == []
    assert is_statement(" with a as (select 1) select * from a")
    assert not is_statement("selected = 3")


def test_templates_draw_the_same_for_the_same_seed() -> None:
    template = Template(
        "a = :a AND b IN (:b) AND c < :c AND d >= :d AND e = ':a' AND f::int = :g",
        lambda dice: {"a": "it's", "b": [1, dice.randrange(9)], "c": Decimal("0.05"), "d": date(1995, 3, 1), "g": None},
    )
    first, again = (template.instance(random.Random(3)) for _ in range(2))
    assert first == again
    assert first.startswith("a = 'it\\'s' AND b IN (1, ")
    assert "c < 0.05 AND d >= DATE '1995-03-01'" in first
    assert first.endswith("f::int = NULL")
    with pytest.raises(ValueError, match=":x without a value"):
        Template("a = :x", {"y": [1]}).instance(random.Random(0))


def test_zipf_draws_the_first_most_often() -> None:
    template = Template("a = :a", {"a": zipf(range(5), 3)})
    dice = random.Random(1)
    drawn = [template.instance(dice) for _ in range(1_000)]
    assert drawn.count("a = 0") > 700


def test_a_workload_that_repeats_itself_is_told_from_one_that_does_not() -> None:
    dice = random.Random(5)
    repeating = diagnose([Query(product(dice.choice(["a", "b", "c"]))) for _ in range(200)])
    assert repeating.recurrence > 0.9
    assert repeating.advice.startswith("A layout will pay")
    new = diagnose([Query(above(number)) for number in range(200)])
    assert new.recurrence == pytest.approx(0.3)
    assert new.advice.startswith("A layout will hardly pay")
    assert diagnose([Query(Opaque("?"))] * 50).advice.startswith("No query has a filter")


def test_skew_is_the_share_of_queries_that_use_the_most_frequent_filters() -> None:
    found = diagnose([Query(above(0))] * 81 + [Query(above(number)) for number in range(1, 20)])
    assert found.filters == 20
    assert found.concentration == pytest.approx(0.82)
    assert found.skew[0] == (0.0, 0.0)
    assert found.skew[-1] == (1.0, 1.0)
    assert found.stability[-1] == (1.0, 1.0)


def test_the_chart_is_well_formed() -> None:
    import xml.etree.ElementTree as ET

    picture = ET.fromstring(diagnose(LOG * 10).chart())
    assert picture.tag.endswith("svg")
    lines = [one for one in picture.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2 * 3, "each curve, and its key"
