"""Queries without a server: what they prove of documents, read by a small model of what a server makes of them.

The model knows the queries that are in use and no more; that real servers read them so is tested in the contract.
"""

from __future__ import annotations

import ipaddress
import math
import operator
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP, SKIP, Ask, Clause, Conjunction, Disjunction
from es_skipping.clauses.evaluate import holds
from es_skipping.clauses.metadata import Boxes, Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import (
    AnyOf,
    HasNotNull,
    HasNull,
    Meets,
    OtherThan,
    Overlaps,
    Question,
    Range,
    TextMatch,
)
from es_skipping.predicates.types import DataType, Value, parse_type
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.elasticsearch import query as query_module
from es_skipping.stores.elasticsearch.bools import EVERY, depth, leaves
from es_skipping.stores.elasticsearch.documents import PROVING_FORMAT
from es_skipping.stores.elasticsearch.fields import Group, encode, with_prefix, with_room_for
from es_skipping.stores.elasticsearch.query import skip_query, witnesses_of
from tests.stores import strategies
from tests.stores.contract import DOUBLE, INT, KINDS_AND_TYPES, STRING, sample_metadata, sample_questions

# --- a small model of a server --------------------------------------------------------------------------------------


class Server:
    """Documents of one index's metadata, and which of them a query matches."""

    def __init__(self, index: IndexDefinition, some: Sequence[Metadata | None]) -> None:
        group = with_prefix(Group("g", index), (one for one in some if one is not None))
        for one in some:
            group = group if one is None else with_room_for(group, one)
        self.index, self.group, self.metadata = index, group, some
        self.addresses = {"g.range", "g.span.range", "g.order"}
        if group.index.kind == "boxes" or group.codec.order != "ip":
            self.addresses = {"g.order"}
        elif group.index.value_type.name == "decimal":
            self.addresses |= {"g.equal"}
        self.documents = [self._document(one) for one in some]

    def _document(self, metadata: Metadata | None) -> dict[str, Any]:
        document: dict[str, Any] = {"format": PROVING_FORMAT, "known": [], "empty": []}
        encoded = None if metadata is None else encode(self.group, metadata)
        if encoded is not None:
            document |= {"known": list(encoded.known), "empty": list(encoded.empty), "g": encoded.fields}
        return document

    def vocabulary(self, _: Group) -> Collection[Value]:
        return {value for one in self.metadata if isinstance(one, Values) for value in one.values}

    def query(self, clause: Clause, **options: Any) -> Any:
        vocabulary = options.pop("vocabulary", self.vocabulary)
        query = skip_query(clause, {self.index.id: self.group}, vocabulary, **options)
        if not options.get("expensive", True) and query is not None:
            self.check_cheap(query)
        return query

    def check_cheap(self, query: Mapping[str, Any]) -> None:
        """Fails where a server that allows no expensive queries would answer 400: patterns, and ranges of keywords."""
        ((kind, asked),) = query.items()
        if kind == "bool":
            for part in (part for name in ("filter", "should", "must_not") for part in asked.get(name, ())):
                self.check_cheap(part)
        assert kind not in ("prefix", "wildcard")
        if kind == "range" and self.index.kind != "boxes" and self.index.value_type.name in ("string", "binary"):
            assert not asked.keys() & {"g.min", "g.max", "g.span.min", "g.span.max", self.group.equal}

    def proved(self, query: Any) -> list[bool]:
        return [query is not None and self.matches(query, document) for document in self.documents]

    def _held(self, document: Mapping[str, Any], field: str) -> list[Any]:
        at: Any = document
        for name in field.split("."):
            at = at.get(name) if isinstance(at, Mapping) else None
        held = at if isinstance(at, list) else [at]
        return [self._comparable(field, one) for one in held if one is not None]

    def _comparable(self, field: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {end: self._comparable(field, one) for end, one in value.items()}
        if field in self.addresses:
            return int(ipaddress.ip_address(value))
        return value.encode("utf-8") if isinstance(value, str) else value

    def matches(self, query: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
        ((kind, asked),) = query.items()
        if kind == "match_all":
            return True
        if kind == "bool":
            assert ("should" in asked) == ("minimum_should_match" in asked)
            assert asked.get("should", True), "to a server, a bool without a clause is everything"
            return (
                all(self.matches(part, document) for part in asked.get("filter", ()))
                and not any(self.matches(part, document) for part in asked.get("must_not", ()))
                and ("should" not in asked or any(self.matches(part, document) for part in asked["should"]))
            )
        if kind == "exists":
            return bool(self._held(document, asked["field"]))
        if kind == "ids":
            return document["_id"] in asked["values"]
        ((field, what),) = asked.items()
        held = self._held(document, field)
        if kind == "term":
            return self._comparable(field, what) in held
        if kind == "terms":
            assert len(what) <= 65_536
            return any(self._comparable(field, one) in held for one in what)
        if kind == "terms_set":
            assert len(what["terms"]) <= 1_024
            (least,) = self._held(document, what["minimum_should_match_field"]) or [None]
            return least is not None and sum(self._comparable(field, one) in held for one in what["terms"]) >= least
        if kind == "range":
            return any(self._reached(one, field, what) for one in held)
        if kind == "prefix":
            return any(one.startswith(what["value"].encode("utf-8")) for one in held)
        assert kind == "wildcard"
        pattern = re.sub(
            r"\\(.)|(\*)|(.)", lambda m: ".*" if m[2] else re.escape(m[1] or m[3]), what["value"], flags=re.DOTALL
        )
        return any(re.fullmatch(pattern, one.decode("utf-8"), re.DOTALL) for one in held)

    def _reached(self, held: Any, field: str, what: Mapping[str, Any]) -> bool:
        asked = {name: self._comparable(field, end) for name, end in what.items() if name != "relation"}
        if not isinstance(held, Mapping):
            assert "relation" not in what
            passes = {"gte": operator.ge, "gt": operator.gt, "lte": operator.le, "lt": operator.lt}
            return all(passes[name](held, end) for name, end in asked.items())
        (low, high), (from_, to) = _ends(held), _ends(asked)
        if what["relation"] == "contains":
            return low <= from_ and to <= high
        assert what["relation"] == "intersects"
        return low <= to and from_ <= high

    def check(self, question: Question, exact: bool, **options: Any) -> int:
        """Nothing is proved that is not false, and if it is to be exact all that is false; returns how much is."""
        clause = Ask(self.index.id, question)
        found = self.proved(self.query(clause, **options))
        for one, proved in zip(self.metadata, found, strict=True):
            verdict = holds(clause, {} if one is None else {self.index.id: one})
            assert not proved or verdict is False, f"unsound: {question} is {verdict} of {one}"
            assert proved or not exact or verdict is not False, f"kept without need: {question} is false of {one}"
        return sum(found)


def _ends(stretch: Mapping[str, Any]) -> tuple[float, float]:
    """Both ends, as the server keeps them: beyond the greatest double there is infinity alone."""
    low = math.nextafter(stretch["gt"], math.inf) if "gt" in stretch else stretch.get("gte", -math.inf)
    return low, math.nextafter(stretch["lt"], -math.inf) if "lt" in stretch else stretch.get("lte", math.inf)


def without_vocabulary(_: Group) -> None:
    return None


# --- every question of every kind and type ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "type"), KINDS_AND_TYPES)
def test_every_question_of_every_type(kind: Kind, type: DataType) -> None:
    server = Server(strategies.index(kind, type), [*sample_metadata(kind, type), None])
    textual = type.name in ("string", "binary")
    vocabularies = (server.vocabulary, without_vocabulary) if textual and kind != "intervals" else (server.vocabulary,)
    totals = []
    for expensive in (True, False):
        for vocabulary in vocabularies:
            total = 0
            for question in sample_questions(kind, type)[:: 3 if kind == "fingerprints" else 1]:
                listed = kind == "values" and vocabulary is server.vocabulary
                exact = not textual or listed or not isinstance(question, AnyOf | OtherThan | Overlaps | TextMatch)
                total += server.check(question, exact, expensive=expensive, vocabulary=vocabulary)
            totals.append(total)
    assert totals[0] >= max(totals) and min(totals) > 0


@pytest.mark.parametrize("axes", [1, 2])
def test_boxes(axes: int) -> None:
    inf = float("inf")
    sides = [(-inf, inf), (-inf, -1.5), (0.0, 0.0), (1.0, 2.0), (2.0, inf)]
    cells = [(side,) * axes for side in sides] + [(sides[at], *[sides[3]] * (axes - 1)) for at in range(5)]
    known: list[Metadata | None] = [*(Boxes((cell,)) for cell in cells), Boxes(()), Boxes(tuple(cells[1:4])), None]
    server = Server(strategies.index("boxes", DOUBLE, axes), known)
    asked = [Range(*side) for side in sides] + [Range(None, 0.5), Range(0.5, None), Range(), Range(1.5, 1.0)]
    total = sum(server.check(Meets((one, *[other] * (axes - 1))), True) for one in asked for other in asked)
    assert total > 0
    assert server.check(HasNotNull(), True) == 1
    assert server.query(Ask(server.index.id, Meets((Range(),) * (axes + 1)))) is None
    assert server.query(Ask(server.index.id, HasNull())) is None
    nothing = Server(server.index, [Boxes(()), None])
    assert nothing.check(Meets((Range(),) * axes), True) == 1


# --- texts --------------------------------------------------------------------------------------------------------

WORDS = ("a", "ab", "abc", "b", "b*", "a?", "é", "\\", "", "\U0001f600")
LIST = strategies.index("values", STRING)


def texts() -> Server:
    return Server(
        LIST,
        [*(Values(frozenset({word}), 0) for word in WORDS), Values(frozenset(WORDS), 0), Values(frozenset(), 0), None],
    )


@pytest.mark.parametrize("expensive", [True, False])
def test_texts(expensive: bool) -> None:
    server = texts()
    for pattern in ("a", "b*", "a?", "\\", "é", "zz", "c", "\U0001f600"):
        for test in ("starts", "ends", "contains"):
            for negated in (False, True):
                asked = TextMatch(test, pattern, negated=negated)  # type: ignore[arg-type]
                server.check(asked, True, expensive=expensive)
                plain = not negated and expensive
                server.check(asked, plain, expensive=expensive, vocabulary=without_vocabulary)
                found = server.query(Ask(LIST.id, asked), expensive=expensive, vocabulary=without_vocabulary)
                assert (found is not None) == (not negated and (expensive or test == "starts"))
    for like in ("a%", "%b%", "a\\"):
        server.check(TextMatch("like", like), "\\" not in like, expensive=expensive)
        assert server.query(Ask(LIST.id, TextMatch("like", like)), vocabulary=without_vocabulary) is None
    beginning = server.proved(
        server.query(Ask(LIST.id, TextMatch("starts", "ab")), expensive=False, vocabulary=without_vocabulary)
    )
    assert beginning[:5] == [True, False, False, True, True]


@pytest.mark.parametrize("expensive", [True, False])
def test_a_range_of_listed_texts_is_decided_by_the_vocabulary(expensive: bool) -> None:
    """Where the first sixteen bytes are the same, no other cheap query can tell which values lie in it."""
    words = ["the same beginning of each: " + end for end in "abcdef"] + ["else"]
    server = Server(LIST, [*(Values(frozenset({word}), 0) for word in words), None])
    asked = Overlaps((Range(words[1], words[2]), Range(words[4], words[5], True, True)))
    assert server.check(asked, True, expensive=expensive) == 5


def test_long_texts_are_cut() -> None:
    long = "é" * 3_000
    server = Server(LIST, [Values(frozenset({word}), 0) for word in (long, long + "z", "é" * 200, "z" * 2_000, "a")])
    for test in ("starts", "ends", "contains"):
        for pattern in (long, long + "z", "z" * 2_000, "é" * 150 + "z"):
            server.check(TextMatch(test, pattern), False, vocabulary=without_vocabulary)  # type: ignore[arg-type]
            query = server.query(Ask(LIST.id, TextMatch(test, pattern)), vocabulary=without_vocabulary)  # type: ignore[arg-type]
            assert server.proved(query)[4]
            assert (
                len(re.findall("é|z", str(query)))
                == min(len(pattern), 200 if test == "starts" else 128) + (test == "starts" and pattern[0] == "z") * 200
            )
    for bound in (long, "z" * 500):
        for one in (Range(bound), Range(bound, None, True), Range(None, bound), Range(None, bound, False, True)):
            server.check(Overlaps((one,)), False, vocabulary=without_vocabulary)


def test_a_long_upper_bound_that_nothing_is_above() -> None:
    """Cut upward it is no bound at all: the range is open above."""
    last = "\U0010ffff" * 300
    server = Server(LIST, [Values(frozenset({word}), 0) for word in ("a", "m", last[:5])])
    for high_open in (False, True):
        question = Overlaps((Range("b", last, False, high_open),))
        assert server.check(question, True, vocabulary=without_vocabulary) == 1


STRETCHES = strategies.index("intervals", STRING)
NAMES = [
    ("apple", "banana"),
    ("cherry", "plum"),
    ("common-prefix/a", "common-prefix/f"),
    ("common-prefix/g", "common-prefix/z"),
]


@pytest.mark.parametrize("names", [NAMES, NAMES[2:]], ids=["16 bytes tell", "16 bytes after the common ones tell"])
@pytest.mark.parametrize("expensive", [True, False])
def test_stretches_of_strings(names: list[tuple[str, str]], expensive: bool) -> None:
    server = Server(STRETCHES, [*(Intervals((pair,), 0) for pair in names), Intervals((), 0), None])
    ends = [end for pair in names for end in pair]
    bounds = [*ends, "b", "common-prefix/fa", "common-prefix/ga", "zebra"]
    asked = [Range(low, None, is_open) for low in bounds for is_open in (False, True)]
    asked += [Range(None, high, False, is_open) for high in bounds for is_open in (False, True)]
    asked += [Range(low, high, True, True) for low in bounds for high in bounds]
    for one in asked:
        server.check(Overlaps((one,)), expensive, expensive=expensive)
    for pair in zip(asked, asked[7:], strict=False):
        server.check(Overlaps(pair), expensive, expensive=expensive)
    for value in bounds:
        server.check(AnyOf((value,)), expensive, expensive=expensive)
        server.check(AnyOf((value, "common-prefix/b")), expensive, expensive=expensive)


def test_more_ranges_than_fit_the_budget() -> None:
    """Ranges between two neighbours, in which there is nothing, count too."""
    server = numbers(60)
    between = [Range(n, n + 1, True, True) for n in range(0, 10, 2)]
    some = Overlaps(tuple(between + [Range(n, n) for n in range(0, 60, 2)]))
    for budget in (12, 20, 30, 60):
        query = server.query(Ask(NUMBERS.id, some), budget=budget)
        assert query is not None and leaves(query) <= budget
        server.check(some, budget == 60, budget=budget)
    strings = Server(STRETCHES, [Intervals(((f"{n:03}", f"{n:03}"),), 0) for n in range(60)])
    texts_ = Overlaps(tuple(Range(f"{n:03}", f"{n:03}") for n in range(0, 60, 2)))
    for budget in (12, 20, 60, 200):
        query = strings.query(Ask(STRETCHES.id, texts_), budget=budget)
        assert query is not None and leaves(query) <= budget
        strings.check(texts_, budget == 200, budget=budget)


def test_one_question_has_the_whole_budget() -> None:
    server = numbers(60)
    apart = Overlaps(tuple(Range(n, n) for n in range(0, 60, 2)))
    assert server.check(apart, True, budget=40) == 30


# --- whole clauses ------------------------------------------------------------------------------------------------

NUMBERS = strategies.index("intervals", INT)


def numbers(count: int = 10) -> Server:
    return Server(NUMBERS, [*(Intervals(((n, n),), 0) for n in range(count)), None])


def asks(*values: int) -> Ask:
    return Ask(NUMBERS.id, AnyOf(values))


def check_clause(server: Server, clause: Clause, **options: Any) -> list[bool]:
    found = server.proved(server.query(clause, **options))
    for one, proved in zip(server.metadata, found, strict=True):
        verdict = holds(clause, {} if one is None else {server.index.id: one})
        assert not proved or verdict is False
    return found


UNKNOWN = Ask("never heard of", HasNull())


def test_connectives() -> None:
    server = numbers(3)
    assert check_clause(server, SKIP) == [True] * 4
    assert server.query(SKIP) == server.query(Disjunction(())) == EVERY
    assert check_clause(server, KEEP) == [False] * 4
    assert server.query(KEEP) is None and server.query(UNKNOWN) is None
    assert check_clause(server, asks(1)) == [True, False, True, False]
    assert check_clause(server, Conjunction((asks(0, 1), asks(1, 2)))) == [True, False, True, False]
    assert check_clause(server, Conjunction((UNKNOWN, asks(1)))) == [True, False, True, False]
    assert check_clause(server, Conjunction((UNKNOWN, KEEP))) == [False] * 4
    assert check_clause(server, Conjunction(())) == [False] * 4
    assert check_clause(server, Disjunction((asks(0), asks(1)))) == [False, False, True, False]
    assert server.query(Disjunction((UNKNOWN, asks(1)))) is None
    assert check_clause(server, Disjunction(())) == [True] * 4
    assert check_clause(server, Disjunction((SKIP, asks(1)))) == [True, False, True, False]


def test_what_does_not_fit_the_budget_is_left_out() -> None:
    server = numbers(30)
    whole = Conjunction(tuple(asks(n, n + 1) for n in range(20)))
    assert sum(check_clause(server, whole)) == 30
    for budget in (4, 9, 17, 40, 200):
        query = server.query(whole, budget=budget)
        assert query is None or leaves(query) <= budget
        check_clause(server, whole, budget=budget)
    either = Disjunction(tuple(Conjunction((asks(n), Ask(NUMBERS.id, OtherThan((n,))))) for n in range(20)))
    for budget in (4, 50, 2_000):
        query = server.query(either, budget=budget)
        assert query is None or leaves(query) <= budget
    assert sum(check_clause(server, either, budget=2_000)) == 30
    many = asks(*range(0, 3_000, 3))
    for budget in (10, 100, 6_000):
        query = server.query(many, budget=budget)
        assert query is not None and leaves(query) <= budget
        check_clause(server, many, budget=budget)
    assert sum(check_clause(server, many)) == 20


def test_what_is_too_deep_is_left_out() -> None:
    server = numbers()
    for levels in (3, 10, 20, 60):
        deep: Clause = asks(3)
        for n in range(levels):
            deep = Conjunction((Disjunction((deep, asks(n % 10))), asks(*range(9))))
        query = server.query(deep)
        assert query is not None and depth(query) <= 26
        found = check_clause(server, deep)
        assert found[9], "what is not deep is asked all the same"


@pytest.mark.parametrize(("levels", "expected"), [(23, 25), (24, 26), (25, 15), (40, 22)])
def test_as_deep_as_servers_allow(levels: int, expected: int) -> None:
    """What would be deeper is cut at half its levels."""
    deep: Clause = asks(3)
    for n in range(levels):
        deep = Conjunction((Disjunction((deep, asks(n % 10))), asks(1)))
    query = numbers().query(deep)
    assert query is not None and depth(query) == expected


@pytest.mark.parametrize("other", [PROVING_FORMAT - 1, FORMAT_VERSION + 1])
def test_documents_of_an_older_or_later_format_prove_nothing(other: int) -> None:
    server = numbers(3)
    for document in server.documents:
        document["format"] = other
    assert server.proved(server.query(asks(1))) == [False] * 4


@pytest.mark.parametrize("type", [INT, STRING])
def test_an_empty_list_of_an_unknown_index_proves_nothing(type: DataType) -> None:
    """A document that says "empty" and not "known" is nobody's; if there is one, it proves nothing."""
    server = Server(strategies.index("values", type), [Values(frozenset(), 0, 0)])
    ask = Ask(server.index.id, HasNotNull())
    assert server.proved(server.query(ask)) == [True]
    server.documents[0]["known"] = []
    assert server.proved(server.query(ask)) == [False]


def test_a_list_of_numbers_is_asked_by_its_order() -> None:
    """Its range says all; a vocabulary would cost a request."""
    server = Server(strategies.index("values", INT), [Values(frozenset({n}), 0) for n in range(5)])

    def not_asked(_: Group) -> None:
        raise AssertionError("the vocabulary is read")

    assert server.check(Overlaps((Range(1, 2),)), True, vocabulary=not_asked) == 3


def test_stretches_that_share_their_sixteen_bytes() -> None:
    """Only the bounds themselves tell such strings apart."""
    long = "a" * 30
    server = Server(
        STRETCHES,
        [Intervals(((long + a, long + b),), 0) for a, b in ("bd", "jm", "xz")] + [Intervals((("0", "1"),), 0)],
    )
    for one, proved in ((Range(long + "n"), 3), (Range(None, long + "h"), 2), (Range(long + "e", long + "h"), 4)):
        assert server.check(Overlaps((one,)), True) == proved


@pytest.mark.parametrize("field", ["range", "nulls"])
def test_what_is_not_seen_proves_nothing(field: str) -> None:
    """A user who may not see a field finds documents without it."""
    server = numbers(3)
    for document in server.documents:
        document.get("g", {}).pop(field, None)
    question: Question = AnyOf((77,)) if field == "range" else HasNull()
    assert server.proved(server.query(Ask(NUMBERS.id, question))) == [False] * 4


@pytest.mark.parametrize(
    "question",
    [AnyOf(("zz",)), Overlaps((Range("\U0001f601"),)), TextMatch("starts", "zz"), TextMatch("contains", "zz")],
)
def test_lists_that_are_not_seen_prove_nothing(question: Question) -> None:
    server = texts()
    seen = server.proved(server.query(Ask(LIST.id, question), vocabulary=without_vocabulary))
    assert seen == [True] * (len(WORDS) + 2) + [False]
    for document in server.documents:
        for field in ("values", "order"):
            document.get("g", {}).pop(field, None)
    hidden = server.proved(server.query(Ask(LIST.id, question), vocabulary=without_vocabulary))
    assert hidden == [False] * (len(WORDS) + 1) + [True, False], "that it is empty is said elsewhere"


def test_values_that_no_object_can_list_are_not_counted() -> None:
    server = Server(LIST, [Values(frozenset({"a"}), 0), Values(frozenset(), 0), None])
    too_long = OtherThan(("a" * 40_000,))
    assert server.check(too_long, True) == 1
    assert "terms_set" not in str(server.query(Ask(LIST.id, too_long)))
    stretches = Server(STRETCHES, [Intervals((("None", "None"),), 0), Intervals((), 0), None])
    assert stretches.check(too_long, True) == 1
    assert stretches.check(OtherThan(("None", "a" * 40_000)), True) == 2


@pytest.mark.parametrize(("most", "asked"), [(5, False), (6, True), (7, True)])
def test_how_many_cells_are_looked_for(monkeypatch: pytest.MonkeyPatch, most: int, asked: bool) -> None:
    """Each value has a cell in each space."""
    monkeypatch.setattr(query_module, "_MAX_TERMS_OF_ALL", most)
    held = [strategies.fingerprints([f"v{space}"], space) for space in (6400, 102_400)]
    server = Server(strategies.index("fingerprints", STRING), held)
    query = server.query(Ask(server.index.id, AnyOf(("x", "y", "z"))))
    assert ("g.prints" in str(query)) is asked


def test_longer_lists_than_are_counted() -> None:
    index = strategies.index("values", INT)
    known = [Values(frozenset({n}), 0) for n in range(490, 510)] + [Values(frozenset(), 0)]
    server = Server(index, [*known, None])
    for count in (499, 500, 501, 505):
        question, few = OtherThan(tuple(range(count))), count <= 500
        assert server.check(question, True) == count - 490 + 1
        assert server.check(question, few, vocabulary=without_vocabulary) == (count - 490 + 1 if few else 0)
    spans = Server(strategies.index("intervals", INT), [Intervals(((n, n),), 0) for n in range(490, 510)])
    assert [spans.check(OtherThan(tuple(range(count))), False) for count in (500, 501)] == [10, 0]


@pytest.mark.parametrize(
    ("index", "known", "fields"),
    [
        (NUMBERS, [Intervals(((1, 2),), 0), Intervals((), 0), None], ["range"]),
        (STRETCHES, [Intervals((("a", "b"),), 0), Intervals((), 0), None], ["range"]),
        (LIST, [Values(frozenset({"a"}), 0), Values(frozenset(), 0), None], ["values", "order"]),
        (
            strategies.index("boxes", DOUBLE, 2),
            [Boxes((((0.0, 1.0), (0.0, 1.0)),)), Boxes(()), None],
            ["box_0.c_boxes_0", "box_0.c_boxes_1"],
        ),
    ],
)
def test_who_sees_the_fields_that_proofs_want_to_see(
    index: IndexDefinition, known: list[Any], fields: list[str]
) -> None:
    """An object shows the field, or has nothing to show, or nothing is known of it; else the field is hidden."""
    server = Server(index, known)
    witnesses = witnesses_of(server.group)
    assert sorted(witnesses) == sorted(f"g.{field}" for field in fields)
    for field, query in witnesses.items():
        assert server.proved(query) == [True] * 3
        hidden = dict(server.documents[0])
        hidden["g"] = {name: value for name, value in hidden["g"].items() if name != field.split(".")[1]}
        assert not server.matches(query, hidden)


def test_nobody_has_to_see_fields_of_a_type_without_an_order() -> None:
    assert witnesses_of(Group("g", strategies.index("intervals", parse_type("variant")))) == {}


def test_boxes_beyond_those_that_an_object_has_need_not_be_seen() -> None:
    sides = ((0.0, 1.0), (0.0, 1.0))
    server = Server(strategies.index("boxes", DOUBLE, 2), [Boxes((sides,)), Boxes((sides, sides))])
    witnesses = witnesses_of(server.group)
    assert sorted(witnesses) == [f"g.box_{box}.c_boxes_{axis}" for box in (0, 1) for axis in (0, 1)]
    assert all(server.proved(query) == [True, True] for query in witnesses.values())
    far = Meets((Range(5.0, 6.0), Range(5.0, 6.0)))
    assert server.check(far, True) == 2
    server.documents[0]["known"] = []
    assert server.proved(server.query(Ask(server.index.id, far))) == [False, True], "nothing is known of it"
    server.documents[0]["known"] = ["g"]
    del server.documents[1]["g"]["box_1"]
    assert server.proved(witnesses["g.box_1.c_boxes_0"]) == [True, False]
    assert server.proved(server.query(Ask(server.index.id, far))) == [True, False]
