"""How replies are decoded."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator

import pytest
from elastic_transport import SerializationError

from es_skipping.stores.elasticsearch.client import _FastReader

BUCKETS = json.dumps([{"key": n, "bits": {"value": n / 2}} for n in range(20_000)]).encode()


@pytest.fixture(params=[True, False], ids=["collecting", "not collecting"])
def collecting(request: pytest.FixtureRequest) -> Iterator[bool]:
    was = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was else gc.disable)()


def test_the_collector_is_left_as_it_was(collecting: bool) -> None:
    assert len(_FastReader().loads(BUCKETS)) == 20_000
    assert gc.isenabled() == collecting
    with pytest.raises(SerializationError, match="deserialize"):
        _FastReader().loads(BUCKETS[:-1])
    assert gc.isenabled() == collecting


def test_the_collector_does_not_look_through_what_is_being_made() -> None:
    runs: list[str] = []
    gc.callbacks.append(lambda phase, _: runs.append(phase))
    try:
        _FastReader().loads(BUCKETS)
    finally:
        del gc.callbacks[-1]
    assert runs.count("start") <= 1
