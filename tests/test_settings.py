"""Settings that cannot be read say what is expected instead."""

from __future__ import annotations

from pathlib import Path

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
        ("verify", "stats", "none or stat or open or mac"),
    ],
)
def test_a_message_names_the_expected_form(name: str, value: str, expected: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings({PREFIX + name: value})[name]
    assert str(caught.value) == f"{PREFIX}{name} is {value!r}, expected {expected}"


def test_a_message_names_where_a_secret_is_missing(tmp_path: Path) -> None:
    key = PREFIX + "store.password"
    with pytest.raises(SettingError) as caught:
        Settings({key: "env:NO_SUCH_SECRET"})["store.password"]
    assert str(caught.value) == f"{key} refers to the environment variable NO_SUCH_SECRET, which is not set"
    with pytest.raises(SettingError) as caught:
        Settings({key: f"file:{tmp_path}/none"})["store.password"]
    assert str(caught.value).startswith(f"{key} refers to the file {tmp_path}/none, which cannot be read: ")
