"""Fields that a user may not see, or that are not there: whatever is missing, no object is skipped that may match.

Each case hides one field, or all of a group, of a dataset with every kind of metadata, on a real server with field and
document level security. An answer may name an object only if the clause is false of what was put, and what concerns
other indexes must be answered as ever. Twice: as a user, whose store compares mappings, and by the proofs alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetDefinition, DatasetEntry, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNaN,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.errors import StoreError
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.covering import covers
from es_skipping.stores.elasticsearch import change as change_module
from es_skipping.stores.elasticsearch import store as store_module
from es_skipping.stores.elasticsearch import views as views_module
from es_skipping.stores.elasticsearch.documents import new_document, object_metadata, whole
from es_skipping.stores.elasticsearch.fields import Group, mapping
from es_skipping.stores.elasticsearch.state import State
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.elasticsearch.visibility import Visibility
from es_skipping.stores.reindex import reindex
from tests.elasticsearch_node import Node, Security, start_node
from tests.server_distributions import ELASTICSEARCH
from tests.stores.contract import keys, write
from tests.stores.strategies import fingerprints

PASSWORD = "correct horse battery"


def index(type: str, kind: Kind, value_type: str, *columns: str) -> IndexDefinition:
    types = (parse_type(value_type),) * len(columns)
    return IndexDefinition(f"{type}({','.join(columns)})".lower(), type, columns, kind, types[0], column_types=types)


NUMBERS = index("MinMax", "intervals", "bigint", "n")
TEXTS = index("MinMax", "intervals", "string", "s")
LIST = index("ValueList", "values", "string", "v")
EXACT = index("ValueList", "values", "double", "x")
BLOOM = index("BloomFilter", "fingerprints", "string", "v")
BOXES = index("GeoBox", "boxes", "double", "lat", "lon")
LATER = index("MinMax", "intervals", "bigint", "later")
INDEXES = (NUMBERS, TEXTS, LIST, EXACT, BLOOM, BOXES)
NAMES = {
    NUMBERS.id: "minmax_n",
    TEXTS.id: "minmax_s",
    LIST.id: "valuelist_v",
    EXACT.id: "valuelist_x",
    BLOOM.id: "bloomfilter_v",
    BOXES.id: "geobox_lat_lon",
}
DEFINITION = DatasetDefinition("events", ("file:/data/events",), "parquet", INDEXES)
SPACE = 640


def made(n: int) -> ObjectMetadata:
    """Object n, of every form there is: single values, wide ranges, gaps, no value at all, unknown values."""
    word, far = f"w{n:02}", f"w{n:02} and a tail that is longer than sixteen bytes"
    numbers: list[Metadata] = [
        Intervals(((n, n),), 0),
        Intervals(((n, n + 2),), 1),
        Intervals(((n, n), (n + 5, n + 9)), None),
        Intervals((), 10),
        Intervals(None, 0),
        Intervals(((n, n), (n + 2, n + 2)), 0),
    ]
    texts: list[Metadata] = [
        Intervals(((word, far),), 0),
        Intervals(((far, far + "z"),), 1),
        Intervals(((word, word), (far, far)), 0),
        Intervals((), 10),
    ]
    lists: list[Metadata] = [Values(frozenset({word, "all"}), 0), Values(frozenset(), 10), Values(frozenset({far}), 2)]
    exact: list[Metadata] = [
        Values(frozenset({float(n)}), 0, 0),
        Values(frozenset({n + 0.5, -1.0}), 0, 1),
        Values(frozenset(), 5, 5),
    ]
    bloom: list[Metadata] = [
        fingerprints([word], SPACE),
        Values(frozenset({word}), 0),
        Intervals(((word, word),), 0),
        Intervals((), 10),
        Values(frozenset(), 10),
    ]
    box = ((float(n), n + 0.5), (0.0, n * 2.0))
    boxes: list[Metadata] = [Boxes((box,)), Boxes((box, ((50.0, 51.0), (7.0, 8.0)))), Boxes(())]
    forms = zip(INDEXES, (numbers, texts, lists, exact, bloom, boxes), strict=True)
    found = {one.id: listed[n % len(listed)] for one, listed in forms}
    return ObjectMetadata(ObjectId(f"file:/data/events/{n:02}", 1000 + n, 1), 10, found)


OBJECTS = [made(n) for n in range(30)]
BY_KEY = {one.id.key: one for one in OBJECTS}

ASKED: dict[str, list[Question]] = {
    NUMBERS.id: [
        Overlaps((Range(4, 8),)),
        Overlaps((Range(1000, None),)),
        Overlaps((Range(5, 6, low_open=True, high_open=True),)),
        AnyOf((7, 12)),
        OtherThan((6, 5, 12)),
        HasNull(),
        HasNotNull(),
    ],
    TEXTS.id: [
        Overlaps((Range("w04", "w08"),)),
        Overlaps((Range("x"),)),
        Overlaps((Range("w05 and a tail that is longer", "w05 and a tail that is lonzzz"),)),
        AnyOf(("w08",)),
        OtherThan(("w02",)),
        HasNotNull(),
    ],
    LIST.id: [
        AnyOf(("w03",)),
        AnyOf(("nowhere",)),
        OtherThan(("all", "w03", "w06")),
        OtherThan(tuple(f"w{n:02}" for n in range(600))),
        Overlaps((Range("w04", "w08"),)),
        TextMatch("like", "%tail%"),
        TextMatch("ends", "nowhere"),
        TextMatch("starts", "w", negated=True),
        HasNull(),
        HasNotNull(),
    ],
    EXACT.id: [
        AnyOf((3.0,)), AnyOf((77.0,)), OtherThan((3.0, 6.0)), Overlaps((Range(5.0, 9.0),)), HasNaN(), HasNotNull(),
    ],
    BLOOM.id: [
        AnyOf(("w05",)), AnyOf(("nowhere",)), Overlaps((Range("w09", "w12"),)), OtherThan(("w02",)), HasNotNull(),
    ],
    BOXES.id: [
        Meets((Range(4.0, 8.0), Range(1.0, 2.0))),
        Meets((Range(50.0, 60.0), Range(0.0, 90.0))),
        Meets((Range(-9.0, -8.0), Range(0.0, 90.0))),
        HasNotNull(),
    ],
}  # fmt: skip
CLAUSES: dict[str, list[Clause]] = {id: [Ask(id, question) for question in asked] for id, asked in ASKED.items()}
TOGETHER: list[Clause] = [
    Conjunction((CLAUSES[NUMBERS.id][0], CLAUSES[LIST.id][0])),
    Disjunction((CLAUSES[NUMBERS.id][1], CLAUSES[LIST.id][1], CLAUSES[BOXES.id][2], CLAUSES[EXACT.id][1])),
]


def leaves(properties: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, one in properties.items():
        if "properties" in one:
            yield from leaves(one["properties"], f"{above}{name}.")
        else:
            yield above + name


def groups() -> dict[str, Group]:
    room = {BOXES.id: {"boxes": 2, "axes": 2, "sides": ("lat", "lon")}, BLOOM.id: {"spaces": (SPACE,), "spans": True}}
    return {one.id: Group(NAMES[one.id], one, **room.get(one.id, {})) for one in INDEXES}  # type: ignore[arg-type]


FIELDS = {id: list(leaves({group.name: mapping(group)})) for id, group in groups().items()}
"""By index."""
OWN = ("known", "empty", "format", "ordinal")
FAILS_ON_9 = ("valuelist_v.order", "bloomfilter_v.order")
"""Fields that Elasticsearch 9.2 answers 500 about, in an aggregation of a view, if they are hidden from the user."""
HIDDEN = {f"{name}.*": id for id, name in NAMES.items()}
HIDDEN |= {field: id for id, fields in FIELDS.items() for field in fields}
"""What a role hides, and the index that it is of; of the document's own fields all indexes are."""


def user_of(hidden: str) -> str:
    return "not-" + hidden.replace("*", "all").replace(".", "-").replace("_", "-")


def role(hidden: Iterable[str], query: str | None = None) -> dict[str, Any]:
    # What reads one key of a range in `_source` alone is hidden as well: `*` spans dots.
    security = {"field_security": {"grant": ["*"], "except": list(hidden)}} if query is None else {"query": query}
    indices = {"names": ["es-skipping-objects-*"], "privileges": ["all"], **security}
    rest = {"names": ["es-skipping-datasets*", "es-skipping-keys"], "privileges": ["all"]}
    return {"cluster": ["all"], "indices": [indices, rest]}


ROLES = {user_of(hidden): role([hidden]) for hidden in (*HIDDEN, *OWN, "bit", "*.gte", "*.lte")}
ROLES["changing"] = role([])
ROLES["some-objects"] = role([], json.dumps({"range": {"ordinal": {"lt": 20}}}))


@dataclass
class Secured:
    """A node with users, each of whom one field is hidden from."""

    node: Node
    authority: Path
    stores: dict[str, ElasticsearchStore]

    def store(self, user: str = "elastic") -> ElasticsearchStore:
        if user not in self.stores:
            named = {"user": user, "password": PASSWORD, "caCerts": str(self.authority), "timeout": "30s"}
            conf = {f"spark.es_skipping.store.{name}": value for name, value in named.items()}
            self.stores[user] = ElasticsearchStore(self.node.url, Settings(conf))
        return self.stores[user]

    @property
    def client(self) -> Elasticsearch:
        return self.store()._cluster.builder

    def entry(self, user: str = "elastic") -> DatasetEntry:
        entry = self.store(user).dataset("events")
        assert entry is not None
        return entry

    def generation(self) -> str:
        return self.entry().snapshot.rpartition("@")[0]

    def state(self) -> State:
        state = self.store()._cluster.state("events")
        assert state is not None
        return state


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority, folder = trustme.CA(), tmp_path_factory.mktemp("ca")
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    chain = b"".join(one.bytes() for one in certificate.cert_chain_pems)
    security = Security(
        chain,
        certificate.private_key_pem.bytes(),
        folder / "ca.pem",
        PASSWORD,
        "".join(f"{name}: {json.dumps(one)}\n" for name, one in ROLES.items()),  # YAML reads JSON
        tuple((name, PASSWORD, (name,)) for name in ROLES),
    )
    node = start_node(security=security)
    found = Secured(node, folder / "ca.pem", {})
    trial = "/_license/start_trial?acknowledge=true"
    reply = found.client.perform_request("POST", trial, headers={"accept": "application/json"})
    assert reply.body["trial_was_started"]  # field and document level security are of a paid licence
    write(found.store(), DEFINITION, OBJECTS)
    yield found
    for store in found.stores.values():
        store.close()
    node.stop()


WAYS = ("", "few", "many")
"""Without a view; in a view as where few objects are kept; as where many are."""


@contextmanager
def asked_by(*, views: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "LARGE", 0 if views else 4_096)
        if views == "many":
            patch.setattr(views_module, "_MAX_ORDINALS_PER_REPLY", 1)
        yield


@contextmanager
def proofs_alone() -> Iterator[None]:
    """As if nobody compared mappings: a proof by itself must not believe what it does not see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Visibility, "flaws", lambda *_: {})
        for module in (store_module, change_module):
            patch.setattr(module, "require_visible", lambda *_, **__: None)
        yield


def answers(store: ElasticsearchStore, entry: DatasetEntry, clauses: Iterable[Clause]) -> list[set[bytes]]:
    """What is skipped; nothing of it may match."""
    found = []
    for clause in clauses:
        skip = keys(store.lookup(entry, clause).skip)
        wrong = [BY_KEY[key] for key in skip if holds(clause, BY_KEY[key].metadata) is not False]
        assert not wrong, f"{clause} is not false of {wrong}"
        found.append(skip)
    return found


@pytest.fixture(scope="module")
def expected(secured: Secured) -> dict[str, list[set[bytes]]]:
    """What is skipped where everything is seen."""
    found = []
    for views in WAYS:
        with asked_by(views=views):
            clauses = CLAUSES | {"together": TOGETHER}
            found.append({id: answers(secured.store(), secured.entry(), asked) for id, asked in clauses.items()})
    assert found[0] == found[1] == found[2]
    return found[0]


MODES = pytest.mark.parametrize("views", WAYS, ids=["direct", "few", "many"])
pytestmark = pytest.mark.in_turn("views")


def test_with_everything_visible_nothing_is_lost(expected: Mapping[str, list[set[bytes]]]) -> None:
    for id, found in expected.items():
        for clause, skip in zip((CLAUSES | {"together": TOGETHER})[id], found, strict=True):
            false = {one.id.key for one in OBJECTS if holds(clause, one.metadata) is False}
            assert skip == false or (id in (TEXTS.id, BLOOM.id) and skip <= false), str(clause)
    assert sum(map(len, expected[TEXTS.id])) > 90  # told apart by 16 bytes
    assert sum(map(len, expected[BLOOM.id])) > 60


def after(id: str) -> str:
    ids = list(CLAUSES)
    return ids[(ids.index(id) + 1) % len(ids)]


@pytest.mark.every(3)
@MODES
@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_hidden_field(secured: Secured, expected: Mapping[str, list[set[bytes]]], hidden: str, views: str) -> None:
    id, user = HIDDEN[hidden], user_of(hidden)
    store, entry = secured.store(user), secured.entry(user)
    with asked_by(views=views):
        if views and hidden in FAILS_ON_9 and ELASTICSEARCH.version.startswith("9."):
            with pytest.raises(StoreError, match="TermState from a different reader"):  # so this user reads all files
                store.lookup(entry, CLAUSES[after(id)][0])
            return
        with proofs_alone():
            answers(store, entry, CLAUSES[id])
        for clause in CLAUSES[id][:2]:
            answer = store.lookup(entry, clause)
            assert answer.skip == b""
            ((named, reason),) = answer.unusable
            assert named == id
            assert hidden.removesuffix("*") in reason
        assert answers(store, entry, CLAUSES[after(id)][:2]) == expected[after(id)][:2]
        answers(store, entry, TOGETHER)


@MODES
@pytest.mark.parametrize("hidden", OWN)
def test_a_hidden_field_of_the_document(secured: Secured, hidden: str, views: str) -> None:
    store, entry = secured.store(user_of(hidden)), secured.entry(user_of(hidden))
    with asked_by(views=views):
        if hidden != "ordinal":
            with proofs_alone():
                for clauses in CLAUSES.values():
                    answers(store, entry, clauses)
        for clauses in CLAUSES.values():
            answer = store.lookup(entry, clauses[0])
            assert answer.skip == b""
            assert f"the field {hidden} is not in the mapping" in answer.unusable[0][1]


@MODES
def test_who_does_not_see_the_powers_of_two_is_answered_as_ever(
    secured: Secured, expected: Mapping[str, list[set[bytes]]], views: str
) -> None:
    store, entry = secured.store(user_of("bit")), secured.entry(user_of("bit"))
    with asked_by(views=views):
        for id, clauses in CLAUSES.items():
            assert answers(store, entry, clauses) == expected[id]


def is_told_less(found: Mapping[str, Metadata], put: Mapping[str, Metadata]) -> None:
    """What was read says at least as much may be in an object as what was put."""
    for id, metadata in found.items():
        assert covers(metadata, put[id]) or looser(metadata, put[id]), f"{id}: {put[id]} was read as {metadata}"


def looser(found: Metadata, put: Metadata) -> bool:
    """Whether metadata of another form says nothing that could be wrong."""
    return isinstance(found, Intervals) and found.ranges is None and not isinstance(put, Intervals)


@pytest.mark.parametrize("hidden", [*HIDDEN, "known", "empty", "format", "*.gte", "*.lte"])
def test_who_does_not_see_a_field_may_not_write_what_was_read(secured: Secured, hidden: str) -> None:
    user = user_of(hidden)
    store, snapshot = secured.store(user), secured.entry().snapshot
    if not hidden.startswith("*"):  # a key of a range is no field
        name = hidden.removesuffix("*")
        with pytest.raises(StoreError, match=rf"the field {name}.* is not in the mapping"):
            reindex(store, secured.store(), "events", into="copy")  # whoever writes the copy
        with pytest.raises(StoreError, match=rf"the field {name}.* is not in the mapping"):
            write(store, replace(DEFINITION, indexes=(*INDEXES, LATER)), [ObjectMetadata(OBJECTS[0].id, 10, {})])
    # And even so what it reads, or takes over into a new document, says no more than what was put.
    groups = secured.state().groups
    with proofs_alone():
        for hit in store._cluster.scan(secured.generation(), None, "ordinal", fields=None):
            source = hit["_source"]
            put = next(one for one in OBJECTS if one.id.path == source["path"])
            is_told_less(object_metadata(source, groups).metadata, put.metadata)
            again = new_document(ObjectMetadata(put.id, None, {}), 99, groups, "later", 2, source)
            is_told_less(object_metadata(again, groups).metadata, put.metadata)
    assert secured.entry().snapshot == snapshot


@pytest.mark.parametrize("hidden", ["minmax_n.range", *(f"{NAMES[one.id]}.*" for one in (NUMBERS, LIST, BLOOM, BOXES))])
def test_a_copy_under_such_a_role_would_prove_nothing_wrong(secured: Secured, hidden: str) -> None:
    """Two walls: without the first, what is written down must still be sound for every reader."""
    store, admin = secured.store(user_of(hidden)), secured.store()
    with proofs_alone():
        reindex(store, store, "events", into="copy", sample=0)
        write(store, replace(DEFINITION, id="copy", indexes=(*INDEXES, LATER)), [replace(OBJECTS[0], metadata={})])
    entry = admin.dataset("copy")
    assert entry is not None
    try:
        for views in WAYS:
            with asked_by(views=views):
                for clauses in CLAUSES.values():
                    answers(admin, entry, clauses)
    finally:
        admin.drop("copy")


def holds_nothing(metadata: Metadata) -> bool:
    return metadata in (Intervals((), 10), Values(frozenset(), 10), Values(frozenset(), 5, 5), Boxes(()))


@pytest.mark.parametrize("also", [[], ["ordinal"], ["ordinal", "known", "empty", "format"]], ids=str)
@pytest.mark.parametrize("views", ["few", "many"])
def test_a_field_that_is_hidden_while_a_view_is_open(secured: Secured, views: str, also: list[str]) -> None:
    """What was seen when the view was opened is not believed to be seen still."""
    store, entry = secured.store("changing"), secured.entry("changing")
    store._views.forget(secured.generation())
    roles = secured.node.folder / "config" / "roles.yml"
    before = roles.read_text(encoding="utf-8")
    with asked_by(views=views):
        for id, clauses in CLAUSES.items():
            answers(store, entry, clauses[:1])
            assert store.lookup(entry, clauses[0]).unusable == (), id
        lines = [line for line in before.splitlines() if not line.startswith("changing:")]
        hidden = role(["bit", *also, *(f"{name}.*" for name in NAMES.values())])
        roles.write_text("\n".join([*lines, f"changing: {json.dumps(hidden)}", ""]), encoding="utf-8")
        try:
            wait_until_shown(secured, store, False)
            for id, clauses in CLAUSES.items():
                if not also:
                    (found,) = answers(store, entry, clauses[1:2])
                    assert all(holds_nothing(BY_KEY[key].metadata[id]) for key in found), id  # `empty` is seen still
                for clause in clauses:
                    with suppress(StoreError) if also else nullcontext():
                        answers(store, entry, [clause])
        finally:
            roles.write_text(before, encoding="utf-8")
            wait_until_shown(secured, store, True)


def wait_until_shown(secured: Secured, store: ElasticsearchStore, shown: bool) -> None:
    """Until the server has read the roles again."""
    deadline = time.monotonic() + 60
    while ("only_count" in str(store._cluster.mappings(secured.generation()))) != shown:
        assert time.monotonic() < deadline, "the server does not read roles.yml again"
        time.sleep(0.5)


@MODES
def test_objects_that_a_user_may_not_see(
    secured: Secured, expected: Mapping[str, list[set[bytes]]], views: str
) -> None:
    store, entry = secured.store("some-objects"), secured.entry("some-objects")
    seen = {one.id.key for one in OBJECTS[:20]}
    with asked_by(views=views):
        for id, clauses in CLAUSES.items():
            assert answers(store, entry, clauses) == [skip & seen for skip in expected[id]]
    assert {one.id.path for one in store.metadata("events")} == {one.id.path for one in OBJECTS[:20]}


# --- fields that are not there --------------------------------------------------------------------------------------


@contextmanager
def another_index(
    secured: Secured,
    change: Any = lambda source: source,
    mappings: Any = lambda own: own,
    alias: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """In the place of the generation one with other documents or another mapping; or an alias of such a one."""
    client, name = secured.client, secured.generation()
    before = client.indices.get(index=name).body[name]
    hits = list(secured.store()._cluster.scan(name, None, "ordinal", fields=None))
    own = {"mappings": before["mappings"], "settings": {"number_of_replicas": 0}}

    def filled(index: str, mappings: Mapping[str, Any], documents: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        client.indices.create(index=index, mappings=mappings, settings=own["settings"])
        fill(client, index, documents)

    documents = [(hit["_id"], with_prints(hit["_source"])) for hit in hits]
    changed = [(id, made) for id, source in documents if (made := change(json.loads(json.dumps(source)))) is not None]
    other = name if alias is None else f"{name}-other"
    client.indices.delete(index=name)
    filled(other, mappings(json.loads(json.dumps(own["mappings"]))), changed)
    if alias is not None:
        client.indices.put_alias(index=other, name=name, **alias)
    forget(secured)
    try:
        yield other
    finally:
        client.indices.delete(index=other)
        filled(name, own["mappings"], documents)
        forget(secured)


@contextmanager
def changed_documents(secured: Secured, change: Any) -> Iterator[None]:
    """With other documents in the place of those that were written."""
    client, name = secured.client, secured.generation()
    hits = list(secured.store()._cluster.scan(name, None, "ordinal", fields=None))
    documents = [(hit["_id"], with_prints(hit["_source"])) for hit in hits]
    fill(client, name, [(id, change(json.loads(json.dumps(source)))) for id, source in documents])
    forget(secured)
    try:
        yield
    finally:
        fill(client, name, documents)
        forget(secured)


def with_prints(source: Mapping[str, Any]) -> dict[str, Any]:
    """A document with what is kept out of its source."""
    return dict(source) | {one.name: whole(one, source) for one in groups().values() if one.name in source}


def fill(client: Elasticsearch, index: str, documents: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    operations = [part for id, source in documents for part in ({"index": {"_id": id}}, source)]
    reply = client.bulk(index=index, operations=operations, refresh=True)
    assert not reply["errors"], reply


def forget(secured: Secured) -> None:
    """Stores remember what cannot change; here it did."""
    for store in secured.stores.values():
        generation = secured.generation()
        store._views.forget(generation)
        store._visibility.forget(generation)
        store._cluster.answers.forget(generation)


def without(source: dict[str, Any], field: str) -> dict[str, Any]:
    """A document without a field, as a pruned copy has it."""
    at: Any = source
    *above, last = field.removesuffix(".*").split(".")
    for name in above:
        at = at.get(name, {})
    at.pop(last, None)
    return source


def sound(secured: Secured, ids: Iterable[str] = CLAUSES) -> None:
    for views in WAYS:
        with asked_by(views=views):
            for id in ids:
                answers(secured.store(), secured.entry(), CLAUSES[id])
            answers(secured.store(), secured.entry(), TOGETHER)


@pytest.mark.every(3)
@pytest.mark.parametrize("missing", [*HIDDEN, "known", "empty", "format", "bit"])
def test_documents_without_a_field(secured: Secured, expected: Mapping[str, list[set[bytes]]], missing: str) -> None:
    """Every other document lacks it. The others, in the same searches, are skipped as ever."""

    def pruned(source: dict[str, Any]) -> dict[str, Any]:
        return without(source, missing) if source["ordinal"] % 2 else source

    whole = {one.id.key for at, one in enumerate(OBJECTS) if at % 2 == 0}
    ids = [HIDDEN[missing]] if missing in HIDDEN else list(CLAUSES)
    with changed_documents(secured, pruned):
        for views in WAYS:
            with asked_by(views=views):
                for id in ids:
                    found = answers(secured.store(), secured.entry(), CLAUSES[id])
                    assert [skip & whole for skip in found] == [skip & whole for skip in expected[id]]
        for one in secured.store().metadata("events"):
            is_told_less(one.metadata, BY_KEY[one.id.key].metadata)


ODD = [*(fields[0] for fields in FIELDS.values()), "minmax_n.range", "valuelist_v.order"]


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("field", "how"),
    [(field, how) for field in ODD for how in ("runtime", "mapping", "type")]
    + [(field, how) for field in ("known", "bit") for how in ("runtime", "type")],
)
def test_a_field_that_is_not_as_it_was_made(secured: Secured, field: str, how: str) -> None:
    def changed(own: dict[str, Any]) -> dict[str, Any]:
        *above, last = field.split(".")
        at = own["properties"]
        for name in above:
            at = at[name]["properties"]
        if how == "runtime":
            own["runtime"] = {field: {"type": "keyword"}}  # without a script it reads `_source`
        elif how == "mapping":
            del at[last]
        else:
            at[last] = {"type": "keyword", "ignore_above": 1}
        return own

    prune = (lambda source: without(source, field)) if how != "runtime" else (lambda source: source)
    with another_index(secured, prune, changed):
        sound(secured)
        ids = [id for id, fields in FIELDS.items() if field in fields] or list(CLAUSES)
        for id in ids:
            answer = secured.store().lookup(secured.entry(), CLAUSES[id][0])
            assert (answer.skip, [index for index, _ in answer.unusable]) == (b"", [id])
            assert field in answer.unusable[0][1]
        told = [check.found for check in secured.store().checks() if (check.name, check.state) == ("mappings", "bad")]
        assert any(NAMES[ids[0]] in text or field in text for text in told)
        with pytest.raises(StoreError, match=field):
            reindex(secured.store(), secured.store(), "events", into="copy")
        with pytest.raises(StoreError, match=field):
            write(secured.store(), DEFINITION, [OBJECTS[0]])


def test_an_index_that_was_copied_in_part(secured: Secured, expected: Mapping[str, list[set[bytes]]]) -> None:
    there = {one.id.key for one in OBJECTS[:7]}
    with another_index(secured, lambda source: source if source["ordinal"] < 7 else None):
        for views in WAYS:
            with asked_by(views=views):
                for id, clauses in CLAUSES.items():
                    found = answers(secured.store(), secured.entry(), clauses)
                    assert found == [skip & there for skip in expected[id]]


def test_a_filtered_alias_in_the_place_of_the_index(secured: Secured, expected: Mapping[str, list[set[bytes]]]) -> None:
    seen = {one.id.key for one in OBJECTS[:9]}
    with another_index(secured, alias={"filter": {"range": {"ordinal": {"lt": 9}}}}):
        for views in WAYS:
            with asked_by(views=views):
                for id, clauses in CLAUSES.items():
                    found = answers(secured.store(), secured.entry(), clauses)
                    assert found == [skip & seen for skip in expected[id]]


def test_a_setting_by_which_long_terms_are_not_found(
    secured: Secured, expected: Mapping[str, list[set[bytes]]]
) -> None:
    """An operator's template may have it; the fields say for themselves how long a term may be."""
    store, definition = secured.store(), replace(DEFINITION, id="short")
    with store.change_with(definition, "shortterms", {"mapping.ignore_above": 5}) as change:
        change.put(OBJECTS)
        entry = change.publish()
    try:
        for views in WAYS:
            with asked_by(views=views):
                for id, clauses in CLAUSES.items():
                    assert answers(store, entry, clauses) == expected[id]
    finally:
        store.drop("short")


@pytest.mark.parametrize("pruned", ["*.range", "*.values", "geobox_*", "*.box_1", "known", "*.packed"])
def test_a_source_that_is_kept_in_part(secured: Secured, expected: Mapping[str, list[set[bytes]]], pruned: str) -> None:
    """Readers ask the index, which has it all; writers would lose what the source lacks."""

    def less(own: dict[str, Any]) -> dict[str, Any]:
        own["_source"]["excludes"].append(pruned)
        return own

    with another_index(secured, mappings=less):
        for views in WAYS:
            with asked_by(views=views):
                for id, clauses in CLAUSES.items():
                    assert answers(secured.store(), secured.entry(), clauses) == expected[id]
        with pytest.raises(StoreError, match="_source"):
            reindex(secured.store(), secured.store(), "events", into="copy")
        with pytest.raises(StoreError, match="_source"):
            write(secured.store(), DEFINITION, [OBJECTS[0]])
        with proofs_alone():
            for one in secured.store().metadata("events"):
                is_told_less(one.metadata, BY_KEY[one.id.key].metadata)


# --- who is told ----------------------------------------------------------------------------------------------------


def test_a_hidden_field_is_told_once_and_named_wherever_people_look(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    user = user_of("minmax_n.range")
    named = {"user": user, "password": PASSWORD, "caCerts": str(secured.authority), "timeout": "30s"}
    store = ElasticsearchStore(
        secured.node.url, Settings({f"spark.es_skipping.store.{name}": value for name, value in named.items()})
    )
    entry, clause = secured.entry(), CLAUSES[NUMBERS.id][0]
    with caplog.at_level(logging.WARNING, "es_skipping"):
        for _ in range(3):
            store.lookup(entry, clause)
    assert [record.message.count("minmax_n.range") for record in caplog.records] == [1]
    explained = store.explain(entry, clause)
    assert "nothing is asked" in explained.text
    assert any("minmax(n) is not used: the field minmax_n.range is not in the mapping" in n for n in explained.notes)
    told = {check.found for check in store.checks() if check.name == "mappings" and check.state == "bad"}
    assert any("the field minmax_n.range is not in the mapping" in text for text in told)
    store.close()
