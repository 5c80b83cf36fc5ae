"""`make test` leaves no test out: each directory is searched, and what the legs name exists."""

from __future__ import annotations

import argparse
from fnmatch import fnmatch

import pytest

from tests import run
from tests.in_turn import HALF

ELSEWHERE = {"connectors", "faults"}
"""Directories that pytest passes over: legs of other Sparks and ``make faults`` name their files."""


def legs_of(*, all: bool = False, half: int | None = None) -> list[run.Leg]:
    """The legs, whatever the Pythons."""
    return run.legs_of(argparse.Namespace(newest="", oldest="", iceberg="", delta="", all=all, half=half))


@pytest.mark.parametrize("folder", ["tests", "es_skipping"])
def test_every_directory_is_searched(pytestconfig: pytest.Config, folder: str) -> None:
    """A room named ``build`` is not the output of a build, which pytest passes over unless it is told not to."""
    names = {part for file in (run.ROOT / folder).rglob("*.py") for part in file.relative_to(run.ROOT).parts[:-1]}
    passed_over = {name for name in names for pattern in pytestconfig.getini("norecursedirs") if fnmatch(name, pattern)}
    assert passed_over - ELSEWHERE == set()


def test_what_is_left_to_lint_is_what_lint_runs() -> None:
    makefile = (run.ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = (line for line in makefile.splitlines() if "_words.py" in line)
    assert recipe.split()[-len(run.BY_LINT) :] == run.BY_LINT


def test_the_legs_name_what_exists() -> None:
    legs = legs_of(all=True)
    assert {leg.part for leg in legs} == set(run.PARTS)
    makefile = (run.ROOT / "Makefile").read_text(encoding="utf-8")
    assert makefile.count(f"--parts {' '.join(run.PARTS)}") == 2, "test-versions and test-all run all parts"
    named = [path for leg in legs if leg.name != "newest" for path in leg.paths if not path.startswith("-")]
    for path in named:
        file, _, test = path.partition("::")
        assert (run.ROOT / file).exists(), path
        if test:
            assert f"def {test.partition('[')[0]}(" in (run.ROOT / file).read_text(encoding="utf-8"), path


def test_each_module_of_the_connectors_is_in_a_leg() -> None:
    """They need sessions of their own, so no leg searches their directory."""
    legs = legs_of()
    named = {path for leg in legs for path in leg.paths}
    there = {str(file.relative_to(run.ROOT)) for file in (run.ROOT / "tests" / "connectors").glob("test_*.py")}
    assert there - named == set()


def test_half_of_the_tests_of_the_long_legs() -> None:
    """Each of them is a leg, and no other leg, nor one of ``make test-all``, runs half."""
    halved = {leg.name: leg.environment[HALF] for leg in legs_of(half=1) if HALF in leg.environment}
    assert halved == dict.fromkeys(run.IN_HALVES, "1")
    assert [leg.name for leg in legs_of(all=True, half=1) if HALF in leg.environment] == []
