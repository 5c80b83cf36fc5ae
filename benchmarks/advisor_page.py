"""Writes the tables of docs/benchmarks/advisor.md and its chart from what `benchmarks.advisor` measured.

Run: ``python -m benchmarks.advisor_page FILE.json [...]``, with the files of ``python -m benchmarks.advisor --json``,
one of them with ``--seconds``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.pages import FOLDER, fill, write_chart
from es_skipping.layout.chart import Role, bar_chart

PAGE: Final = FOLDER / "advisor.md"
OURS, ORACLE, NOTHING = "advise", "oracle of the sample", "nothing"
CHART_BUDGET: Final = 0.1

Row: TypeAlias = Mapping[str, Any]


class Measured:
    """The rows of a run, by workload, budget and way of choosing."""

    def __init__(self, given: Sequence[Row]) -> None:
        self.timed = [row for row in given if "candidates" in row]
        rows = [row for row in given if "candidates" not in row]
        self.rows = {(row["workload"], row["budget"], row["way"]): row for row in rows}
        self.workloads = list(dict.fromkeys(row["workload"] for row in rows))
        self.budgets = sorted({row["budget"] for row in rows})
        self.ways = list(dict.fromkeys(row["way"] for row in rows))

    def saved(self, workload: str, budget: float, way: str) -> float:
        return float(self.rows[workload, budget, way]["saved"])

    def full(self, workload: str) -> float:
        """The most that any way saves with all bytes."""
        return max(self.saved(workload, self.budgets[-1], way) for way in self.ways)

    def cells(self) -> Iterator[tuple[str, float]]:
        for workload in self.workloads:
            for budget in self.budgets:
                yield workload, budget

    def of_oracle(self) -> list[tuple[float, str, float]]:
        """By workload and budget, what the advice saves as a share of what the oracle's indexes save; least first."""
        return sorted(
            (self.saved(*cell, OURS) / best, *cell) for cell in self.cells() if (best := self.saved(*cell, ORACLE))
        )

    def at_a_tenth(self) -> list[tuple[float, str]]:
        """What the advice saves with a tenth of the bytes, as a share of the full benefit; least first."""
        return sorted((self.saved(one, 0.1, OURS) / full, one) for one in self.workloads if (full := self.full(one)))

    def mistaken(self, told: str) -> list[tuple[float, str, float]]:
        """Points between the measured share and ``predicted`` or ``expected``; most first."""
        rows = ((workload, budget, self.rows[workload, budget, OURS]) for workload, budget in self.cells())
        return sorted((abs(row[told] - row["saved"]), *cell) for *cell, row in rows)[::-1]

    def near(self, mistakes: Sequence[tuple[float, str, float]]) -> int:
        """How many mistakes are within 10 % of what was opened, or one point."""
        return sum(
            points <= max(0.01, 0.1 * (1 - self.saved(workload, budget, OURS))) for points, workload, budget in mistakes
        )

    def behind(self) -> list[tuple[float, str, float, str]]:
        """Points by which a simpler way saves more than the advice within the same bytes; most first."""
        simple = [way for way in self.ways if way not in (OURS, ORACLE)]
        found = (
            (self.saved(*cell, way) - self.saved(*cell, OURS), *cell, way) for cell in self.cells() for way in simple
        )
        return sorted((one for one in found if one[0] > 0), reverse=True)

    def seconds(self) -> float:
        return max(float(row["advise s"]) for row in self.rows.values())


def goals(found: Measured) -> Iterator[str]:
    """The table of what was expected and what was measured."""
    least, tenth, behind = found.of_oracle(), found.at_a_tenth(), found.behind()
    reached = sum(share >= 0.95 for share, *_ in least)
    yield "| expected | measured |"
    yield "|---|---|"
    yield (
        f"| at least 95 % of the oracle's saved bytes at each budget | in {reached} of {len(least)} cases; "
        f"least {least[0][0]:.1%} ({least[0][1]}, {least[0][2]:.0%}) |"
    )
    enough = sum(share >= 0.9 for share, _ in tenth)
    yield (
        f"| at least 90 % of the full benefit with 10 % of the bytes, on five of six workloads | on {enough} of "
        f"{len(tenth)}: {', '.join(f'{name} {share:.0%}' for share, name in tenth)} |"
    )
    for told, what in (
        (
            "predicted",
            "predicted within 10 % of what was opened, or one point: by the sample's proofs, of the later queries",
        ),
        ("expected", "the same by the queries that the advice saw"),
    ):
        wrong = found.mistaken(told)
        yield (
            f"| {what} | in {found.near(wrong)} of {len(wrong)} cases; farthest {100 * wrong[0][0]:.1f} points "
            f"({wrong[0][1]}, {wrong[0][2]:.0%}) |"
        )
    lost = (
        f"{100 * behind[0][0]:.1f} points ({behind[0][1]}, {behind[0][2]:.0%}, {behind[0][3]})" if behind else "never"
    )
    yield f"| never behind a simpler way with the same bytes | behind in {len(behind)} comparisons; farthest {lost} |"
    yield f"| seconds of an advice | at most {found.seconds():.1f} |"
    for row in found.timed:
        yield (
            f"| {row['queries']:,} queries, 60 candidates and {row['objects']} objects in at most 60 seconds | "
            f"{row['candidates']} candidates: {row['seconds']:.1f} |"
        )


def tables(found: Measured) -> Iterator[str]:
    """The share of bytes saved, a table for each workload."""
    for workload in found.workloads:
        yield f"**{workload}**\n"
        yield "| way | " + " | ".join(f"{budget:.0%}" for budget in found.budgets) + " |"
        yield "|---" + "|--:" * len(found.budgets) + "|"
        for way in found.ways:
            if way != NOTHING:
                shares = (f"{found.saved(workload, budget, way):.1%}" for budget in found.budgets)
                yield f"| {way} | {' | '.join(shares)} |"
        yield ""


def chart(found: Measured) -> str:
    """The mean share saved over all workloads, with a tenth of the bytes."""
    bars = {
        way: sum(found.saved(one, CHART_BUDGET, way) for one in found.workloads) / len(found.workloads)
        for way in found.ways
        if way != NOTHING
    }
    roles: dict[str, Role] = dict.fromkeys(bars, "reference")
    roles |= {OURS: "ours", ORACLE: "ideal"}
    title = "Bytes saved on later queries, with a tenth of the candidates' bytes"
    return bar_chart(bars, title=title, percent=True, roles=roles)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", type=Path, nargs="+", help="what benchmarks.advisor wrote")
    rows = [row for file in options.parse_args().files for row in json.loads(file.read_text(encoding="utf-8"))]
    found = Measured(rows)
    (FOLDER / "advisor.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    write_chart("advisor", chart(found))
    fill("goals", "\n".join(goals(found)), PAGE)
    fill("saved", "\n".join(tables(found)).strip(), PAGE)


if __name__ == "__main__":
    main()
