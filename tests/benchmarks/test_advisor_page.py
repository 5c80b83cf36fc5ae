"""What the advisor's page says of made-up measurements."""

from __future__ import annotations

from benchmarks.advisor_page import Measured, chart, goals, tables

WAYS = {"nothing": (0.0, 0.0), "MinMax on all": (0.3, 0.5), "advise": (0.45, 0.7), "oracle of the sample": (0.5, 0.7)}


def rows(workload: str, predicted: float) -> list[dict[str, object]]:
    return [
        {
            "workload": workload, "budget": budget, "way": way, "saved": saved[at], "predicted": saved[at] + predicted,
            "expected": saved[at] - 0.3, "advise s": 2.0 if way == "advise" else 0.0,
        }
        for at, budget in enumerate((0.1, 1.0))
        for way, saved in WAYS.items()
    ]  # fmt: skip


def test_goals_are_counted() -> None:
    found = Measured([*rows("near", 0.01), *rows("far", 0.2)])
    measured = [line.split(" | ")[1].removesuffix(" |") for line in list(goals(found))[2:]]
    assert measured == [
        "in 2 of 4 cases; least 90.0% (far, 10%)",
        "on 0 of 2: far 64%, near 64%",
        "in 2 of 4 cases; farthest 20.0 points (far, 10%)",
        "in 0 of 4 cases; farthest 30.0 points (near, 100%)",
        "behind in 0 comparisons; farthest never",
        "at most 2.0",
    ]
    assert "| advise | 45.0% | 70.0% |" in list(tables(found))
    assert "advise" in chart(found) and "nothing" not in chart(found)


def test_an_advice_of_many_queries_is_told_apart() -> None:
    timed = {"queries": 1000, "candidates": 61, "objects": 256, "seconds": 12.34}
    found = Measured([*rows("one", 0.0), timed])
    assert found.workloads == ["one"]
    assert list(goals(found))[-1] == (
        "| 1,000 queries, 60 candidates and 256 objects in at most 60 seconds | 61 candidates: 12.3 |"
    )


def test_a_way_that_saves_more_is_named() -> None:
    measured = [{**row, "saved": 0.6} if row["way"] == "MinMax on all" else row for row in rows("one", 0.0)]
    assert "behind in 1 comparisons; farthest 15.0 points (one, 10%, MinMax on all)" in "".join(
        goals(Measured(measured))
    )
