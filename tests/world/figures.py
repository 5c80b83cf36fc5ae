"""What a run of the world found, as numbers that can be added up, kept and shown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.world.judge import Judgement
from tests.world.objects import Indexed
from tests.world.world import World

__all__ = ["PAGE_DATA", "Figures", "Missed"]

PAGE_DATA: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "missed-skips.json"


def _name(world: World, indexed: Indexed) -> str:
    """An index's type, and what it is of where that is not a column."""
    columns = indexed.definition.columns
    of_columns = indexed.definition.type == "Features" or set(columns) <= set(world.domain.columns)
    return indexed.definition.type if of_columns else f"{indexed.definition.type} of `{', '.join(columns)}`"


@dataclass
class Missed:
    """Skips that one kind of metadata misses for one reason.

    Attributes
    ----------
    indexes
        Index types.
    cases
        How many.
    columns, filter, rows
        One of them: the columns' types, the predicate, and the object's rows.
    """

    indexes: str
    reason: str
    cases: int
    columns: str
    filter: str
    rows: list[list[str]]


@dataclass
class Figures:
    """What was judged.

    Attributes
    ----------
    judged
        By domain and evaluator: predicates, filters, objects, cases, skipped, skippable, wrong, missed, seconds.
    missed
        What plain Python misses, by index types and reason.
    """

    judged: list[dict[str, Any]] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)

    def add(self, world: World, found: Judgement, seconds: float) -> None:
        """Take in a judgement."""
        self.judged.append(
            {
                "domain": world.domain.name,
                "evaluator": found.evaluator,
                "predicates": found.predicates,
                "filters": found.filters,
                "objects": found.objects,
                "cases": found.cases,
                "skipped": found.skipped,
                "skippable": found.skippable,
                "wrong": found.wrong_cases,
                "missed": sum(found.missed.values()),
                "seconds": round(seconds),
            }
        )

    def add_missed(self, world: World, found: Judgement) -> None:
        """Take in why skips were missed."""
        for (kind, reason), cases in found.missed.items():
            named = dict.fromkeys(_name(world, indexed) for indexed in world.kinds[kind])
            indexes = "all together" if kind == "all" else ", ".join(named)
            finding = found.examples[kind, reason]
            columns = ", ".join(f"{name} {type}" for name, type in world.domain.columns.items())
            new = Missed(indexes, reason, cases, columns, str(finding.asked.sql), [list(row) for row in finding.rows])
            known = next((one for one in self.missed if (one.indexes, one.reason) == (indexes, reason)), None)
            if known is None:
                self.missed.append(new)
            else:
                known.cases += cases

    def total(self, name: str, evaluator: str | None = None) -> int:
        """The sum of a number, of all evaluators or of one."""
        return sum(one[name] for one in self.judged if evaluator in (None, one["evaluator"]))

    def save(self, path: Path = PAGE_DATA) -> None:
        """Keep them, for the docs."""
        self.missed.sort(key=lambda one: (one.indexes == "all together", one.indexes, -one.cases))
        text = json.dumps({"judged": self.judged, "missed": list(map(asdict, self.missed))}, indent=1)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path = PAGE_DATA) -> Figures:
        """What was kept."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(kept["judged"], [Missed(**one) for one in kept["missed"]])

    def reasons(self) -> Iterable[tuple[str, str]]:
        """Index types and reasons."""
        return ((one.indexes, one.reason) for one in self.missed)
