"""A client of a server must not read the server's secrets, nor send them to a store of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from es_skipping.errors import SettingError
from es_skipping.lookup.stores import SessionStores

URL, TOKEN = "spark.es_skipping.store.url", "spark.es_skipping.store.token"
LAUNCHED = {URL: "http://127.0.0.1:9", TOKEN: "env:ES_SKIPPING_SECRET"}


def stores(launched: Mapping[str, str] | None) -> SessionStores:
    def no_files(url: str) -> Any:
        raise AssertionError(url)

    return SessionStores(no_files, launched)


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ES_SKIPPING_SECRET", "aWQ6a2V5")


def test_the_launched_store_gets_its_secret() -> None:
    assert stores(LAUNCHED).store(LAUNCHED).url == "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "changed",
    [
        {URL: "http://127.0.0.1:10"},
        {TOKEN: "file:/etc/passwd"},
        {TOKEN: "env:PATH"},
        {"spark.es_skipping.store.password": "env:ES_SKIPPING_SECRET"},
    ],
)
def test_a_session_that_changes_url_or_reference_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="a session has changed"):
        stores(LAUNCHED).store({**LAUNCHED, **changed})


def test_a_session_may_bring_its_own_store_and_secret(tmp_path: Path) -> None:
    own = {URL: "http://127.0.0.1:10", TOKEN: "aWQ6b3RoZXI="}
    assert stores(LAUNCHED).store(own).url == own[URL]


def test_a_driver_of_ones_own_resolves_every_reference() -> None:
    assert stores(None).store({**LAUNCHED, URL: "http://127.0.0.1:11"}).url == "http://127.0.0.1:11"


@pytest.mark.parametrize(
    "changed",
    [
        {URL: "http://127.0.0.1:10"},
        {"spark.es_skipping.store.sslFingerprint": "AA:BB"},
        {"spark.es_skipping.store.caCerts": "/tmp/mine.pem"},
    ],
)
@pytest.mark.parametrize("token", ["env:ES_SKIPPING_SECRET", "aWQ6c2VjcmV0"])
def test_the_secret_of_the_launch_goes_to_no_other_server(changed: dict[str, str], token: str) -> None:
    """Neither as a reference nor as a text, which Spark hides from a session, but sends with its settings."""
    launched = {**LAUNCHED, TOKEN: token}
    with pytest.raises(SettingError, match=f"a session has changed .*{next(iter(changed))}"):
        stores(launched).store({**launched, **changed})
