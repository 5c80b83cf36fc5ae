"""The key matrix: users x indexes x stores; and what a key's reference may be."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from es_skipping.catalog import ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.metadata import Intervals, Values
from es_skipping.clauses.questions import AnyOf, Overlaps, Range
from es_skipping.errors import IndexDefinitionError, ProtectionError, StoreFormatError
from es_skipping.lookup.registry import IndexedDataset
from es_skipping.predicates.types import parse_type
from es_skipping.row_groups import row_groups_of
from es_skipping.stores.base import MetadataStore
from es_skipping.stores.memory.store import MemoryStore
from es_skipping.stores.protection import keys as keys_module
from es_skipping.stores.protection.keys import check_protection, load_key
from es_skipping.stores.protection.store import ProtectedStore
from tests.stores.contract.examples import LIST, MINMAX, dataset_definition, keys, object_id, write
from tests.stores.protection.conftest import hashed, in_clear, reopened, sealed, sealed_files
from tests.stores.strategies import index as index_of_kind

DAY_LIST = index_of_kind("values", parse_type("bigint"))
PAY, CITY, DAY = MINMAX, LIST, index_of_kind("intervals", parse_type("bigint"))
OBJECTS = [
    ObjectMetadata(
        object_id(n),
        n,
        {PAY.id: Intervals(((n, n),), 0), CITY.id: Values(frozenset({f"city{n}"}), 0), DAY.id: Intervals(((n, n),), 0)},
    )
    for n in range(6)
]
ONLY_2: dict[str, Clause] = {
    PAY.id: Ask(PAY.id, Overlaps((Range(2, 2),))),
    CITY.id: Ask(CITY.id, AnyOf(("city2",))),
    DAY.id: Ask(DAY.id, Overlaps((Range(2, 2),))),
}
BUT_2 = {object_id(n).key for n in range(6) if n != 2}
SPOILT: dict[str, Callable[[pytest.MonkeyPatch, str], None]] = {
    "missing": lambda patch, name: patch.delenv(name),
    "wrong": lambda patch, name: patch.setenv(name, "33" * 32),
    "truncated": lambda patch, name: patch.setenv(name, "11" * 31),
    "not a key": lambda patch, name: patch.setenv(name, "planted-secret-text"),
    "empty": lambda patch, name: patch.setenv(name, ""),
}


def _skipped(store: MetadataStore, clause: Clause) -> set[bytes]:
    entry = store.dataset("events")
    assert entry is not None
    return keys(store.lookup(entry, clause).skip)


@pytest.mark.parametrize("lost", [("PAY_KEY",), ("CITY_KEY",), ("PAY_KEY", "CITY_KEY")], ids="+".join)
def test_without_its_key_an_index_is_unknown_and_the_others_serve(
    store: ProtectedStore, lost: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    definition = dataset_definition(sealed(PAY), hashed(CITY), DAY)
    write(store, definition, OBJECTS)
    assert all(_skipped(store, clause) == BUT_2 for clause in ONLY_2.values())
    without = {{"PAY_KEY": PAY.id, "CITY_KEY": CITY.id}[name] for name in lost}
    for spoil in SPOILT.values():
        user = reopened(store)
        assert all(_skipped(user, clause) == BUT_2 for clause in ONLY_2.values())  # it has had the key
        caplog.clear()
        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, "es_skipping"):
            for name in lost:
                spoil(patch, name)
            for _ in range(2):
                _check(user, without)
            # A build says so, and changes nothing.
            with pytest.raises(ProtectionError, match=f"env:({'|'.join(lost)}) "):
                write(user, definition, OBJECTS)
        warned = [one.getMessage() for one in caplog.records if "is not used" in one.getMessage()]
        assert len(warned) == len(without), warned
        assert all(f"env:{name}" in "".join(warned) for name in lost)
        assert "planted-secret-text" not in caplog.text
        assert "11" * 31 not in caplog.text
    assert all(_skipped(store, clause) == BUT_2 for clause in ONLY_2.values())


def _check(user: ProtectedStore, without: set[str]) -> None:
    entry = user.dataset("events")
    assert entry is not None
    for id, clause in ONLY_2.items():
        answer = user.lookup(entry, clause, detail=True)
        assert keys(answer.skip) == (set() if id in without else BUT_2), id
        assert answer.known == len(OBJECTS)
        assert [index for index, _ in answer.unusable] == ([id] if id in without else [])
    assert _skipped(user, Conjunction(tuple(ONLY_2.values()))) == BUT_2  # by what is in clear
    assert _skipped(user, Disjunction(tuple(ONLY_2.values()))) == set()


def test_explain_names_the_missing_key_and_shows_no_literal_of_its_index(
    store: ProtectedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = write(store, dataset_definition(sealed(PAY), hashed(CITY), DAY), OBJECTS)
    both = Conjunction((ONLY_2[CITY.id], ONLY_2[DAY.id], Ask(PAY.id, Overlaps((Range(4_242_424, None),)))))
    shown = store.explain(entry, both)
    assert "city2" not in shown.text  # the store gets tokens
    assert any("this process decrypts" in note for note in shown.notes)
    monkeypatch.delenv("CITY_KEY")
    monkeypatch.delenv("PAY_KEY")
    shown = store.explain(entry, both)
    text = shown.text + "\n".join(shown.notes)
    assert "city2" not in text
    assert "4242424" not in text
    assert "env:CITY_KEY is missing" in text
    assert "env:PAY_KEY is missing" in text


def test_an_index_is_dropped_without_its_key(store: ProtectedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = dataset_definition(sealed(PAY), hashed(CITY), DAY)
    write(store, definition, OBJECTS)
    assert sealed_files(store)
    monkeypatch.delenv("PAY_KEY")
    write(store, dataset_definition(*definition.indexes[1:]))
    assert _skipped(store, ONLY_2[CITY.id]) == BUT_2
    assert not sealed_files(store)
    write(store, dataset_definition(DAY))
    assert _skipped(store, ONLY_2[DAY.id]) == BUT_2
    store.drop("events")
    assert store.datasets() == []


def test_refreshes_removals_and_reindexing(store: ProtectedStore) -> None:
    from es_skipping.stores.reindex import reindex

    definition = dataset_definition(sealed(PAY), hashed(CITY), DAY)
    write(store, definition, OBJECTS[:3])
    write(store, definition, OBJECTS[3:])
    with store.change(definition) as change:
        change.remove([OBJECTS[5].id])
        change.publish()
    expected = BUT_2 - {object_id(5).key}
    store.optimize("events")
    for user in (store, reopened(store)):
        assert all(_skipped(user, clause) == expected for clause in ONLY_2.values())
    assert {ids for _, ids in store.objects("events")} == {frozenset({PAY.id, CITY.id, DAY.id})}
    target = ProtectedStore(MemoryStore(f"memory://copy-{id(store)}"))
    assert reindex(store, target, "events", into="other").copied == 5
    entry = target.dataset("other")
    assert entry is not None
    for clause in ONLY_2.values():
        assert keys(target.lookup(entry, clause).skip) == expected
    target.drop("other")


@pytest.mark.parametrize(
    ("mode", "key", "says"),
    [
        ("secret", "env:X", "protect is 'secret'"),
        ("sealed", None, "not a reference"),
        ("hashed", "ab" * 32, "not a reference"),
        ("plain", "env:X", "key is given"),
        (None, None, "protect is None"),
    ],
)
def test_a_protection_that_makes_no_sense(mode: object, key: object, says: str) -> None:
    with pytest.raises(IndexDefinitionError, match=says) as caught:
        check_protection(mode, key)
    assert "abab" not in str(caught.value)


def test_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hr.key"
    file.write_text("22" * 32 + "\n")
    assert load_key(f"file:{file}") == load_key("env:PAY_KEY")
    monkeypatch.setenv("BASE64", "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI=")
    assert load_key("env:BASE64") == load_key("env:PAY_KEY")
    assert "22" not in repr(load_key("env:PAY_KEY"))
    cut = tmp_path / "cut.key"
    cut.write_text("22" * 31)
    for reference, says in [
        (f"file:{cut}", "text of 62 characters"),
        (f"file:{tmp_path}/none", "No such file"),
        (f"file:{tmp_path}", "cannot be read|not a regular file"),
        ("file:/dev/null", "not a regular file"),
        ("vault:hr/pay", "no installed package serves 'vault'"),
    ]:
        with pytest.raises(ProtectionError, match=says):
            load_key(reference)


def test_a_key_service(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Point:
        def load(self) -> Callable[[str], str]:
            return serve

    def serve(rest: str) -> str:
        calls.append(rest)
        if rest == "down":
            raise RuntimeError("planted-secret-text")
        return "22" * 32

    monkeypatch.setattr(keys_module, "entry_points", lambda group, name: [Point()] if name == "vault" else [])
    for _ in range(3):
        assert load_key("vault:hr/pay") == load_key("env:PAY_KEY")
    assert calls == ["hr/pay"]
    with pytest.raises(ProtectionError, match="its service failed: RuntimeError") as caught:
        load_key("vault:down")
    assert "planted" not in str(caught.value)


def test_a_key_service_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python finds the entry point of a package, and a store uses its keys."""
    (tmp_path / "safe_deposit.py").write_text("def serve(rest):\n    return {'hr/pay': '22' * 32}[rest]\n")
    installed = tmp_path / "safe_deposit-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: safe-deposit\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[es_skipping.keys]\nsafe = safe_deposit:serve\n")
    store = ProtectedStore(MemoryStore(f"memory://service-{tmp_path.name}"))
    with pytest.raises(ProtectionError, match="no installed package serves 'safe' keys"):
        load_key("safe:hr/pay")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_key("safe:hr/pay") == load_key("env:PAY_KEY")
    write(store, dataset_definition(sealed(PAY, "safe:hr/pay"), DAY), OBJECTS)
    assert _skipped(store, ONLY_2[PAY.id]) == BUT_2
    with pytest.raises(ProtectionError, match="safe:other is missing: its service failed: KeyError"):
        load_key("safe:other")
    store.drop("events")


def test_needs_and_protection_belong_together(store: ProtectedStore) -> None:
    """Tokens that are read as values would prove what is not so: an index that lost one of the two is unknown."""
    written = hashed(DAY_LIST)
    objects = [ObjectMetadata(object_id(n), n, {DAY_LIST.id: Values(frozenset({n}), 0)}) for n in range(6)]
    entry = write(store, dataset_definition(written), objects)
    asked = Ask(DAY_LIST.id, AnyOf((2,)))
    assert keys(store.lookup(entry, asked).skip) == BUT_2
    for broken in (replace(written, protection=None), replace(written, needs=())):
        definition = dataset_definition(broken)
        assert definition.not_understood(broken) == ("a protection that fits its needs",)
        assert IndexedDataset.of(store, replace(entry, definition=definition)).labellers == ()
        with pytest.raises(StoreFormatError, match="a protection that fits its needs"):
            write(store, definition, objects)
    assert in_clear(sealed(PAY)) == PAY


def test_files_and_row_groups_are_one_warning(store: ProtectedStore, caplog: pytest.LogCaptureFixture) -> None:
    """Row groups are a dataset of their own with the same indexes, which people do not see."""
    files = write(store, dataset_definition(sealed(PAY), DAY), OBJECTS)
    groups = write(store, dataset_definition(sealed(PAY), DAY, id=row_groups_of("events")), OBJECTS)
    for verify in (None, "env:NOWHERE"):
        user = ProtectedStore(reopened(store).unprotected, verify)
        caplog.clear()
        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, "es_skipping"):
            patch.delenv("PAY_KEY")
            for entry in (files, groups, files):
                assert user.lookup(entry, ONLY_2[PAY.id]).skipped == 0
                assert user.lookup(entry, ONLY_2[DAY.id]).skipped == (5 if verify is None else 0)
        told = [one.getMessage() for one in caplog.records]
        assert [text for text in told if "rowgroups" in text] == []
        assert [text.count("env:PAY_KEY") for text in told if "NOWHERE" not in text] == [1]
        assert len(told) == (1 if verify is None else 2), told
