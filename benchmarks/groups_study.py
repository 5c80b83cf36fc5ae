"""The dissertation's curves for column groups, and a table of 453 columns; without Spark.

Run: ``python -m benchmarks.groups_study``. Writes ``docs/benchmarks/groups_study.json``, the charts, and the tables of
``docs/benchmarks/column-groups.md``.

*Curves* (its Fig. 4.7): a table of 11 columns, queries that select k columns by one comparison of another. One
parameter at a time moves from its usual value: a comparison leaves a fifth of the rows, k is 2, comparisons are drawn
by Zipf 1.1, and queries choose from 6 sets of columns. Each point is the mean over some seeds.

*453 columns*: the shape of the Sloan survey's table and log as the dissertation tells them: 1,755 queries to learn from
and 585 others, which read 13.6 columns on average (3 to 23, a deviation of 5.13). Its data and log are not public in
this form, so all else is made up: 40 sets of columns, some of them asked often and some columns in many sets, and one
or two comparisons in each query.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, Final

from benchmarks.gsop_search import BLOCKS, Setting, compared, design, histogram, schemes, table
from benchmarks.layout_tpch import DOCS
from benchmarks.pages import fill
from es_skipping.layout import Query, mine_features, zipf
from es_skipping.layout.chart import Role, line_chart
from es_skipping.layout.groups.demands import Demand, demands_of
from es_skipping.layout.groups.grouping import Designer
from es_skipping.layout.groups.vectors import GlobalVectors
from es_skipping.predicates.tree import And

__all__ = ["charts", "curves", "wide"]

USUAL: Final = Setting(seed=0, selectivity=0.2, selected=2, skew=1.1, templates=6)
MOVED: Final[Mapping[str, tuple[str, Sequence[float]]]] = {
    "selectivity": ("share of the rows that a comparison leaves", (0.02, 0.05, 0.1, 0.2, 0.33, 0.5)),
    "selected": ("columns that a query selects", (1, 2, 4, 6, 8, 10)),
    "skew": ("Zipf exponent of the comparisons", (0, 0.5, 1.1, 2, 3)),
    "templates": ("sets of columns", (1, 3, 6, 15, 45)),
}
"""What a chart's axis is called, and the values of that parameter."""

ROLES: Final[Mapping[str, Role]] = {
    "SOP": "reference",
    "a group for each column": "reference",
    "HillClimb-like": "reference",
    "Hyrise-like": "reference",
    "GSOP": "ours",
}
WIDE: Final = 453


def cells(demands: Sequence[Demand], rows: int) -> int:
    """Those of all rows in the columns that queries read."""
    return rows * sum(demand.count * len(demand.columns) for demand in demands)


def curves(rows: int, seeds: int) -> dict[str, dict[str, dict[str, float]]]:
    """By parameter, scheme and value: cells and ids read, as a share of all cells of the queries' columns."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, (_, values) in MOVED.items():
        lines: dict[str, dict[str, float]] = {scheme: {} for scheme in ROLES}
        for value in values:
            shares: dict[str, list[float]] = {scheme: [] for scheme in ROLES}
            for seed in range(seeds):
                moved: dict[str, Any] = {name: value}
                designer, test = design(replace(USUAL, seed=seed, **moved), rows)
                for scheme, grouping in schemes(designer).items():
                    shares[scheme].append(grouping.cost(test).read / cells(test, rows))
            for scheme, some in shares.items():
                lines[scheme][f"{value:g}"] = round(fmean(some), 4)
            print(name, value, {scheme: line[f"{value:g}"] for scheme, line in lines.items()}, flush=True)
        found[name] = lines
    return found


def survey(setting: Setting, count: int, seed: int, columns: Sequence[str]) -> Iterator[Query]:
    """Queries of the survey's shape; sets and comparisons are those of the setting."""
    same = random.Random(setting.seed)
    often = list(zipf(columns, 1.0).values())
    sets = []
    for _ in range(setting.templates):
        wanted = min(23, max(3, round(same.gauss(13.6, 5.13))))
        some: dict[str, None] = {}
        while len(some) < wanted:
            some[same.choices(columns, often)[0]] = None
        sets.append(list(some))
    comparisons = {name: [compared(setting, same, name) for _ in range(8)] for name in columns}
    weights = list(zipf(range(8), setting.skew).values())
    dice = random.Random(seed)
    for chosen in dice.choices(sets, list(zipf(range(len(sets)), 0.7).values()), k=count):
        filtered = [dice.choices(comparisons[name], weights)[0] for name in chosen[: dice.choice((1, 1, 2))]]
        yield Query(filtered[0] if len(filtered) == 1 else And(tuple(filtered)), columns=tuple(chosen))


def wide(rows: int) -> dict[str, Any]:
    """What queries of 453 columns read under each scheme."""
    names = tuple(f"c{at}" for at in range(WIDE))
    # With this seed the sets that are drawn have the columns of the survey: 13.6 on average, a deviation of 4.9.
    setting = Setting(seed=41, selectivity=0.1, selected=0, skew=1.1, templates=40)
    train, test = (list(survey(setting, count, seed, names)) for count, seed in ((1755, 1), (585, 2)))
    mined = mine_features(train, 40)
    demands, others = demands_of(train, mined, names), demands_of(test, mined, names)
    vectors = GlobalVectors(histogram(table(setting, rows, names), mined), rows // BLOCKS)
    designer = Designer(names, demands, vectors)
    told: dict[str, Any] = {}
    for name, grouping in schemes(designer).items():
        share = grouping.cost(others).read / cells(others, rows)
        told[name] = {"read": round(share, 4), "groups": len(grouping.groups)}
        print(name, told[name], flush=True)
    read = [len(query.columns or ()) for query in test]
    return {"rows": rows, "features": len(mined), "columns a query": round(fmean(read), 1), "schemes": told}


def charts(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """By parameter: the name of the chart's file, and the picture."""
    for name, lines in report["curves"].items():
        label, _ = MOVED[name]
        points = {scheme: [(float(at), share) for at, share in line.items()] for scheme, line in lines.items()}
        title = f"Cells and ids read, by the {label}" if name == "selectivity" else f"Cells and ids read, by {label}"
        yield (
            f"groups_study_{name}",
            line_chart(points, title=title, x_label=label, y_label="of all cells", percent=True, roles=ROLES),
        )


def curves_table(report: Mapping[str, Any]) -> str:
    parts = []
    for name, lines in report["curves"].items():
        label, _ = MOVED[name]
        values = next(iter(lines.values()))
        parts += [f"| {label} | " + " | ".join(values) + " |", "|---" + "|--:" * len(values) + "|"]
        for scheme, line in lines.items():
            parts.append(f"| {scheme} | " + " | ".join(f"{share:.1%}" for share in line.values()) + " |")
        parts += ["", f"![Cells and ids read, by {label}](groups_study_{name}.svg)", ""]
    return "\n".join(parts).strip()


def wide_table(report: Mapping[str, Any]) -> str:
    told = report["wide"]["schemes"]
    lines = ["| scheme | groups | cells and ids read | GSOP reads so much of it |", "|---|--:|--:|--:|"]
    lines.append(f"| plain Parquet | 1 | 100.0% | {told['GSOP']['read']:.2f} |")
    for name, one in told.items():
        share = told["GSOP"]["read"] / one["read"]
        lines.append(f"| {name} | {one['groups']} | {one['read']:.1%} | {share:.2f} |")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--seeds", type=int, default=5)
    given = arguments.parse_args()
    report = {
        "rows": given.rows,
        "seeds": given.seeds,
        "curves": curves(given.rows, given.seeds),
        "wide": wide(given.rows),
    }
    (DOCS / "groups_study.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name, drawn in charts(report):
        (DOCS / f"{name}.svg").write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")
    page = DOCS / "column-groups.md"
    about = f"\n    python -m benchmarks.groups_study --rows {given.rows} --seeds {given.seeds}\n\n"
    fill("curves", f"{about}{curves_table(report)}\n", page)
    told = report["wide"]
    assert isinstance(told, dict)
    shape = f"{told['rows']:,} rows, {told['features']} features; a query reads {told['columns a query']} columns."
    fill("453 columns", f"{about}{shape}\n\n{wide_table(report)}\n", page)


if __name__ == "__main__":
    main()
