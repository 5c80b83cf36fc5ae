"""A slice of ``make load``."""

from __future__ import annotations

from tests.clients.applications import Lake
from tests.clients.load import measure


def test_nothing_grows_and_nothing_fails(lake: Lake) -> None:
    measured = measure(lake, 1_000, 8)
    assert measured.failures == 0
    assert max(measured.files) <= 8
    assert measured.helper_growth < 30
