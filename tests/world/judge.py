"""Judges an evaluator over a world by two claims: no wrong skip, and no missed skip that its metadata could prove.

A skip is wrong where a row of the object, or a row that an object with the same metadata may hold, satisfies the
predicate. A skip is missed where no row that the metadata admits satisfies it, and the object is kept all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from tests.world.evaluators import Evaluator
from tests.world.reasons import EMPTY, reason
from tests.world.world import Asked, World

__all__ = ["THE_STORE", "Finding", "Judgement", "judge"]

THE_STORE: Final = "the store keeps more than the metadata that it was given says"


@dataclass(frozen=True)
class Finding:
    """One predicate about which an evaluator is wrong.

    Parameters
    ----------
    objects
        The numbers of the objects.
    rows
        The first of these objects as SQL texts.
    """

    evaluator: str
    kind: str
    asked: Asked
    objects: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        zone = "" if self.asked.zone == "UTC" else f" in {self.asked.zone}"
        return (
            f"{self.evaluator}, {self.kind}: {self.asked.sql}{zone} skips {len(self.objects)} objects, "
            f"one of them with the rows {self.rows}; the filter is {self.asked.predicate}"
        )


@dataclass
class Judgement:
    """What was found of one evaluator.

    Attributes
    ----------
    predicates
        SQL texts that were judged.
    filters
        Different filters among them; each was asked once for each kind of metadata.
    cases
        Filters by objects by kinds.
    skipped, skippable
        Objects that were skipped, and that hold no row of the answer, over all cases.
    wrong
        One finding for each predicate and kind with wrong skips.
    missed
        By reason, how many cases were kept though the metadata could prove that they hold nothing.
    examples
        By reason the first of them.
    """

    evaluator: str
    predicates: int = 0
    filters: int = 0
    objects: int = 0
    cases: int = 0
    skipped: int = 0
    skippable: int = 0
    wrong_cases: int = 0
    wrong: list[Finding] = field(default_factory=list)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], Finding] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.evaluator}: {self.predicates:,} predicates, {self.filters:,} filters, {self.objects:,} objects, "
            f"{self.cases:,} cases, {self.skipped:,} of {self.skippable:,} objects without a match skipped, "
            f"{self.wrong_cases:,} wrong, {sum(self.missed.values()):,} missed"
        )


def judge(
    world: World, evaluator: Evaluator, asked: Sequence[Asked] | None = None, *, than: Evaluator | None = None
) -> Judgement:
    """Ask everything.

    Parameters
    ----------
    asked
        Some of the world's predicates; None is all of them.
    than
        Skips as much as can be expected: what it skips and the evaluator keeps is missed. None is what the metadata
        could prove.
    """
    asked = world.asked if asked is None else asked
    found = Judgement(evaluator.name, objects=len(world.objects), filters=len(asked))
    found.predicates = sum(one.spellings for one in asked)
    truth = np.array([one.truth for one in asked]).T
    matches = _meet(world.members, truth)  # objects by predicates
    evaluator.prepare(asked)
    for kind in evaluator.kinds:
        possible = _meet(world.admits(kind), truth) if kind in world.kinds else matches
        for number, one in enumerate(asked):
            skipped = evaluator.skipped(one, kind)
            found.cases += len(skipped)
            found.skipped += int(skipped.sum())
            found.skippable += int((~matches[:, number]).sum())
            wrong = skipped & possible[:, number]
            if wrong.any():
                found.wrong_cases += int(wrong.sum())
                found.wrong.append(_finding(world, evaluator, kind, one, wrong))
            if than is not None:
                missed = than.skipped(one, kind) & ~skipped
            elif kind in world.kinds:
                missed = ~skipped & ~possible[:, number]
            else:
                continue  # nothing is known of what it could prove
            if not missed.any():
                continue
            empty = np.array([not object for object in world.objects])
            for part, why in ((missed & ~empty, None), (missed & empty, EMPTY)):
                if part.any():
                    if than is not None:
                        why = THE_STORE
                    elif why is None:
                        why = reason(world, one, kind)
                    found.missed[kind, why] += int(part.sum())
                    found.examples.setdefault((kind, why), _finding(world, evaluator, kind, one, part))
    return found


def _meet(rows: npt.NDArray[np.bool_], truth: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The product of two tables of truths; as numbers, for which there is a fast one."""
    found: npt.NDArray[np.bool_] = rows.astype(np.float32) @ truth.astype(np.float32) > 0
    return found


def _finding(world: World, evaluator: Evaluator, kind: str, asked: Asked, of: npt.NDArray[np.bool_]) -> Finding:
    numbers = tuple(int(number) for number in np.flatnonzero(of))
    # The smallest object tells the most.
    smallest = min(numbers, key=lambda number: len(world.objects[number]) or 9)
    return Finding(
        evaluator.name, kind, asked, numbers, tuple(world.table.rows[row] for row in world.objects[smallest])
    )
