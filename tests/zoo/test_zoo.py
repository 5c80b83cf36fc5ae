"""Every animal is caught within some thousand cases, in which neither its mended twin nor this package loses a row.

``make zoo`` prints what it took, and looks for them in the enumerated world and in the peers' own wheels too.
"""

from __future__ import annotations

import os

import pytest

from tests.zoo.animals import ANIMALS
from tests.zoo.hunt import SOURCES, Hunt, hunt
from tests.zoo.ours import OURS

SEED = int(os.environ.get("ES_SKIPPING_SEED", "18"))
LEAST_ROUNDS, MOST_ROUNDS, MOST_CASES = 1, 40, 64_000


@pytest.fixture(scope="module", params=SOURCES)
def hunted(request: pytest.FixtureRequest) -> tuple[str, Hunt]:
    """The animals that live where the source draws from, their twins and this package, asked the same cases."""
    source: str = request.param
    here = [animal for animal in ANIMALS if source in animal.types]
    wrong = {animal.name: animal.wrong for animal in here}
    mended = {f"{animal.name} mended": animal.mended for animal in here}
    return source, hunt(source, wrong, {**mended, **OURS}, SEED, LEAST_ROUNDS, MOST_ROUNDS)


@pytest.mark.every(2)
def test_every_animal_is_caught(hunted: tuple[str, Hunt]) -> None:
    source, found = hunted
    expected = {animal.name for animal in ANIMALS if source in animal.types}
    assert expected
    assert {name for name, catch in found.caught.items() if catch.cases <= MOST_CASES} >= expected
    for name in sorted(expected):
        catch = found.caught[name]
        print(f"{name} after {catch.cases} cases, {catch.seconds:.2f} s: {catch.example}")  # noqa: T201 - for -s


@pytest.mark.every(2)
def test_no_twin_and_nothing_of_ours_is_caught(hunted: tuple[str, Hunt]) -> None:
    source, found = hunted
    sound = {f"{animal.name} mended" for animal in ANIMALS if source in animal.types} | OURS.keys()
    assert not {name: found.caught[name].example for name in sound & found.caught.keys()}
    assert all(found.skipped[name] > found.cases / 100 for name in sound), found.skipped


def test_every_animal_lives_somewhere() -> None:
    assert len(ANIMALS) >= 10
    assert len({animal.name for animal in ANIMALS}) == len(ANIMALS)
    for animal in ANIMALS:
        assert set(animal.types) <= SOURCES.keys(), animal.name
