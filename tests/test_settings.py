"""Settings that cannot be read say what is expected instead."""

from __future__ import annotations

import pytest

from es_skipping.errors import SettingError
from es_skipping.settings import PREFIX, Settings


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("store.timeout", "2 sec", "a positive duration such as 2s or 500ms"),
        ("store.timeout", "soon", "a positive duration such as 2s or 500ms"),
        ("store.timeout", "-1s", "a positive duration such as 2s or 500ms"),
        ("breaker.failures", "few", "a positive whole number"),
        ("breaker.failures", "0", "a positive whole number"),
        ("metadata.budget", "16 kilo", "a positive number of bytes such as 4096 or 64k"),
        ("metadata.budget", "0k", "a positive number of bytes such as 4096 or 64k"),
        ("strict", "yes", "true or false"),
        ("verify", "stats", "none or stat or open"),
    ],
)
def test_what_is_expected_is_told(name: str, value: str, expected: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings({PREFIX + name: value})[name]
    assert str(caught.value) == f"{PREFIX}{name} is {value!r}, expected {expected}"
