"""Many identities in little memory, and what is among what by keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.catalog import ObjectId
from es_skipping.stores import object_list
from es_skipping.stores.object_list import ObjectList, as_keys, is_among

ODD = ["file:/a b", "s3a://b/é\ud800", 'file:/"\\\n', "file:/\U0001f600"]


def test_as_a_list() -> None:
    plain = [ObjectId(f"{ODD[n % 4]}/{n}", n, n - 5000) for n in range(10_000)]
    packed = ObjectList(plain)
    assert list(packed) == plain
    assert (packed[0], packed[-1], packed[4096]) == (plain[0], plain[-1], plain[4096])
    assert packed[4000:4200] == plain[4000:4200]
    assert packed[9_999:20_000] == plain[9_999:]
    assert packed.keys.tobytes() == b"".join(one.key for one in plain)
    assert packed.mtimes.tolist() == [one.mtime for one in plain]
    chosen = np.arange(10_000) % 3 == 0
    assert list(packed.those(chosen)) == plain[::3]
    assert packed.those(chosen | True) is packed
    assert not len(ObjectList()) and list(ObjectList()) == []


def test_memory() -> None:
    packed = ObjectList(
        ObjectId(f"s3a://lake/events/day={n % 365:03}/part-{n:07}.parquet", n, n) for n in range(50_000)
    )
    assert sum(map(len, packed._pages)) < 12 * len(packed)


@given(st.lists(st.binary(min_size=16, max_size=16)), st.lists(st.binary(min_size=16, max_size=16)))
def test_is_among(keys: list[bytes], others: list[bytes]) -> None:
    others += [keys[0], bytes(16), b"\xff" * 16, keys[-1][:15] + b"\x00"] if keys else []
    found = is_among(as_keys(b"".join(keys)), np.sort(as_keys(b"".join(others))))
    assert found.tolist() == [key in others for key in keys]


def test_no_key_is_cut() -> None:
    assert object_list._KEY.itemsize == 16
    one = as_keys(b"a" * 15 + b"\x00")
    assert one.tobytes() == b"a" * 15 + b"\x00"
