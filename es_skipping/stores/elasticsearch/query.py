"""The clause translator: from a clause to the query of the objects for which it is *false*.

The query asks for positive proof. A query for what to *keep* would lose every object that lacks the statistic: a range
over a missing field matches nothing. So would "none of" over a field that the user may not see. A leaf demands that
``known`` lists the index's fields, and that ``empty`` lists them too or the very field without an answer exists. A
conjunction needs one part proved false, a disjunction all parts; a part without a proof is None. Only *false* skips.

No scoring, no scripts, no ``nested``; ``expensive`` says whether the server allows the queries that
``search.allow_expensive_queries=false`` refuses. Without them less is skipped, never wrongly more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from es_skipping.clauses.clause import Ask, Clause, Conjunction, Decided, Disjunction
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
from es_skipping.predicates.text import text_test
from es_skipping.predicates.types import DataType, Value
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.elasticsearch.bools import (
    EVERY,
    Query,
    all_of,
    any_of,
    count,
    cut,
    depth,
    height,
    joined,
    leaves,
    merged,
    none_of,
)
from es_skipping.stores.elasticsearch.codecs import WINDOW, Bytes, Codec, Keys, Unanswerable, codec_of
from es_skipping.stores.elasticsearch.documents import PROVING_FORMAT
from es_skipping.stores.elasticsearch.fields import Group, cut_down, cut_up, span_of
from es_skipping.stores.elasticsearch.prints import holds_none

__all__ = ["LEAF_BUDGET", "MAX_TERMS", "PROVING", "Vocabulary", "exists", "skip_query", "witnesses_of"]

Vocabulary: TypeAlias = Callable[[Group], Collection[Value] | None]
"""All values of a value list in the dataset, or None if there are too many."""

PROVING: Final[Query] = {"range": {"format": {"gte": PROVING_FORMAT, "lte": FORMAT_VERSION}}}
"""The documents whose format allows proofs."""
LEAF_BUDGET: Final = 6_000
"""Leaf clauses of one query, until the server says what it allows: more with more memory, and never less than 1,024."""
MAX_TERMS: Final = 60_000
"""Terms of one ``terms`` query; servers allow 65,536."""
_MAX_TERMS_OF_ALL: Final = 300_000
_MAX_COUNTED_TERMS: Final = 500
_MAX_DEPTH: Final = 26
"""Levels of ``bool``; servers allow 30."""
_BYTES_TYPES: Final = ("string", "binary")
_LONGEST_RANGED: Final = 400
"""At most this many bytes in a term of a range or a prefix. Each is a state of an automaton; servers allow 1,000."""
_LONGEST_PATTERN: Final = 128
"""At most this many characters in a wildcard query; servers refuse costly automatons."""


def skip_query(
    clause: Clause,
    groups: Mapping[str, Group],
    vocabulary: Vocabulary,
    *,
    expensive: bool = True,
    budget: int = LEAF_BUDGET,
) -> Query | None:
    """The query for the documents for which a clause is proved false; None if there is no proof.

    Parameters
    ----------
    groups
        Fields by index id; an index that is not there is unknown.
    vocabulary
        Called for questions that are decided value by value, such as a text pattern.
    budget
        How many leaf clauses the query may have. Above it ranges are merged, and then parts of the clause left out.
    """
    clause = joined(clause)
    asks = max(1, count(clause))
    ranges = max(1, (budget - 4 * asks) // asks)
    levels = height(clause)
    while True:
        compiled = _Translator(groups, vocabulary, expensive, ranges).clause(cut(clause, levels), budget - 1)
        if compiled is None or compiled == EVERY:
            return compiled
        if depth(proof := all_of([PROVING, compiled])) <= _MAX_DEPTH:
            return proof
        levels = min(levels - 1, max(levels // 2, _MAX_DEPTH))


# --- clauses ------------------------------------------------------------------------------------------------------


class _Translator:
    def __init__(self, groups: Mapping[str, Group], vocabulary: Vocabulary, expensive: bool, ranges: int) -> None:
        self._groups = groups
        self._vocabulary = vocabulary
        self._expensive = expensive
        self._ranges = ranges

    def clause(self, clause: Clause, budget: int) -> Query | None:
        """The query for objects that a clause is proved false for, with at most this many leaves."""
        match clause:
            case Decided(value):
                return None if value else EVERY
            case Ask(index, question):
                group = self._groups.get(index)
                query = None if group is None else self._ask(group, question)
                return None if query is None or leaves(query) > budget else query
            case Conjunction(parts):  # parts that exceed the budget are left out: any part is proof enough
                proofs: list[Query] = []
                for part in parts:
                    proof = self.clause(part, budget)
                    if proof is not None:
                        proofs.append(proof)
                        budget -= leaves(proof)
                return any_of(proofs) if proofs else None
            case Disjunction(parts):
                demanded: list[Query] = []
                for part in parts:
                    proof = self.clause(part, budget)
                    if proof is None:
                        return None
                    demanded.append(proof)
                    budget -= leaves(proof)
                return all_of(demanded) if demanded else EVERY

    def _ask(self, group: Group, question: Question) -> Query | None:
        asked: list[Callable[[], Query | None]]
        match group.index.kind:
            case "intervals":
                asked = [lambda: self._of_intervals(group, question)]
            case "boxes":
                asked = [lambda: _of_boxes(group, question)]
            case "values" | "fingerprints":  # an object is remembered in one of three forms
                asked = [lambda: self._of_values(group, question), lambda: _of_prints(group, question)]
                if group.spans:
                    asked.append(lambda: self._of_intervals(span_of(group), question))
        proofs = [proof for proof in map(_answered, asked) if proof is not None]
        return any_of(proofs) if proofs else None

    # --- intervals

    def _of_intervals(self, group: Group, question: Question) -> Query | None:
        known = _known(group)
        match question:
            case HasNull():
                return _none_counted(group, "nulls")
            case HasNaN():
                return _none_counted(group, "nans")
            case HasNotNull():
                return all_of([known, _none_counted(group, "nans"), _empty(group)])
            case AnyOf(values):
                return self._of_intervals(group, Overlaps(tuple(Range(value, value) for value in values)))
            case OtherThan(values):
                return all_of([known, any_of([_empty(group), *self._nothing_but(group, values)])])
            case Overlaps(ranges):
                return _none_in(group, f"{group.name}.range", self._reached(group, ranges))
        return None

    def _nothing_but(self, group: Group, values: Iterable[Value]) -> list[Query]:
        codec = group.codec
        terms = [str(term) for term in map(codec.term, values) if term is not None]
        if not terms or len(terms) > _MAX_COUNTED_TERMS:
            return []
        return [_counted_terms(f"{group.name}.only", terms, f"{group.name}.only_count")]

    def _reached(self, group: Group, ranges: Iterable[Range]) -> list[Query]:
        """One query per range that an object's intervals might reach into."""
        codec, field = group.codec, f"{group.name}.range"
        textual = group.index.value_type.name in _BYTES_TYPES
        asked: list[Query] = []
        keyed: list[Keys] = []
        for one in ranges:
            keys = codec.bounds(one)
            if keys is None:
                continue
            low, high = keys
            if low is not None and high is not None and low > high:
                # Between two neighbours, both excluded, there is no value; an interval around them may reach across.
                asked.append({"range": {field: {**codec.encode(high, low), "relation": "contains"}}})
            else:
                keyed.append(keys)
                if textual:
                    beyond = _beyond(group, one, expensive=self._expensive)
                    inside = _intersects(field, codec, keys)
                    asked.append(all_of([inside, none_of(beyond)]) if beyond else inside)
        if textual and sum(map(leaves, asked)) <= self._ranges:
            return asked
        if textual:
            asked = []
        return asked + [_intersects(field, codec, keys) for keys in merged(keyed, max(1, self._ranges - len(asked)))]

    # --- values

    def _of_values(self, group: Group, question: Question) -> Query | None:
        known = _known(group)
        match question:
            case HasNull():
                return _none_counted(group, "nulls")
            case HasNaN():
                return _none_counted(group, "nans")
            case HasNotNull():
                return all_of([known, _empty(group), _none_counted(group, "nans")])
            case AnyOf(values):
                return self._holds_none(group, values)
            case OtherThan(values):
                terms = [term for term in map(group.codec.term, values) if term is not None]
                if len(terms) > _MAX_COUNTED_TERMS:
                    excluded = frozenset(values)
                    others = self._of_vocabulary(group, lambda value: value not in excluded)
                    return None if others is None else self._holds_none(group, others)
                proof = [_counted_terms(group.equal, terms, f"{group.name}.count")] if terms else []
                return all_of([known, any_of([_empty(group), *proof])])
            case Overlaps(ranges):
                return self._values_in(group, ranges)
            case TextMatch() if group.index.value_type.name == "string":
                return self._matches(group, question)
        return None

    def _holds_none(self, group: Group, values: Iterable[Value]) -> Query | None:
        """Proof that none of these values is listed."""
        codec = group.codec
        terms = [term for term in map(codec.term, values) if term is not None]
        if len(terms) > _MAX_TERMS_OF_ALL:
            return None
        chunks = [terms[at : at + MAX_TERMS] for at in range(0, len(terms), MAX_TERMS)]
        return _none_in(group, group.equal, ({"terms": {group.equal: chunk}} for chunk in chunks))

    def _of_vocabulary(self, group: Group, wanted: Callable[[Value], bool]) -> list[Value] | None:
        every = self._vocabulary(group)
        return None if every is None else [value for value in every if wanted(value)]

    def _values_in(self, group: Group, ranges: tuple[Range, ...]) -> Query | None:
        codec, textual = group.codec, group.index.value_type.name in _BYTES_TYPES
        bounded = [(one, codec.bounds(one)) for one in ranges]
        asked = [(one, keys) for one, keys in bounded if keys is not None and not _inverted(keys)]
        if textual:
            inside = self._of_vocabulary(group, lambda value: any(_within(value, one) for one, _ in asked))
            if inside is not None:
                return self._holds_none(group, inside)
            if self._expensive and len(asked) <= self._ranges:
                queries = [{"range": {group.equal: _as_terms(codec, one)}} for one, _ in asked]
                return _none_in(group, group.equal, queries)
        keyed = merged([keys for _, keys in asked], self._ranges)
        order = _order_codec(group)
        return _none_in(group, group.order, ({"range": {group.order: order(keys)}} for keys in keyed))

    def _matches(self, group: Group, question: TextMatch) -> Query | None:
        def passes(value: Value) -> bool:
            truth = text_test(question.test, str(value), question.pattern, question.escape)
            return truth is None or truth != question.negated

        matching = self._of_vocabulary(group, passes)
        if matching is not None:
            return self._holds_none(group, matching)
        if question.negated or question.test not in ("starts", "ends", "contains"):
            return None
        codec = group.codec
        codec.bounds(Range(question.pattern))  # refuses what is not UTF-8
        field = group.equal
        if question.test == "starts":
            if self._expensive:
                beginning = cut_down(question.pattern, _LONGEST_RANGED)
                return _none_in(group, field, [{"prefix": {field: {"value": beginning}}}])
            assert isinstance(codec, Bytes)
            raw = codec.raw(question.pattern)
            low, high = codec.window(raw), codec.window(raw.ljust(len(codec.prefix) + WINDOW, b"\xff"))
            return _none_in(group, group.order, [{"range": {group.order: codec.encode(low, high)}}])
        if not self._expensive:
            return None
        ends = question.test == "ends"
        part = question.pattern[-_LONGEST_PATTERN:] if ends else question.pattern[:_LONGEST_PATTERN]
        literal = "".join("\\" + c if c in "*?\\" else c for c in part)
        pattern = f"*{literal}" if ends else f"*{literal}*"
        return _none_in(group, field, [{"wildcard": {field: {"value": pattern}}}])


# --- pieces -------------------------------------------------------------------------------------------------------


def _known(group: Group) -> Query:
    return {"term": {"known": group.name}}


def _empty(group: Group) -> Query:
    return {"term": {"empty": group.name}}


def exists(field: str) -> Query:
    """Documents that show a value in a field."""
    return {"exists": {"field": field}}


def witnesses_of(group: Group) -> dict[str, Query]:
    """The fields that proofs want to see, each with the documents that make no difference to what is proved: they show
    the field, or say that they have nothing to show, or prove nothing."""
    if not group.index.value_type.supported:
        return {}
    unknown = none_of([_known(group)])
    if group.index.kind == "boxes":
        slots = [(at, f"{group.name}.box_{at}.{side}") for at in range(group.boxes) for side in _sides(group)]
        return {field: any_of([exists(field), _at_most(group, at), unknown]) for at, field in slots}
    fields = [f"{group.name}.range"] if group.index.kind == "intervals" else [group.equal, group.order]
    return {field: any_of([exists(field), _empty(group), unknown]) for field in fields}


def _none_in(group: Group, field: str, reached: Iterable[Query]) -> Query:
    """Proof that no value is reached, by queries over one field: it is seen to hold values, or there are none."""
    return all_of([_known(group), any_of([_empty(group), all_of([exists(field), none_of(reached)])])])


def _none_counted(group: Group, count: str) -> Query:
    return {"term": {f"{group.name}.{count}": 0}}


def _counted_terms(field: str, terms: list[Any], count: str) -> Query:
    """Documents whose values are all among the terms: as many match as there are. (A term given twice counts twice.)"""
    return {"terms_set": {field: {"terms": list(dict.fromkeys(terms)), "minimum_should_match_field": count}}}


def _intersects(field: str, codec: Codec, keys: Keys) -> Query:
    return {"range": {field: {**codec.encode(*keys), "relation": "intersects"}}}


def _inverted(keys: Keys) -> bool:
    low, high = keys
    return low is not None and high is not None and low > high


def _within(value: Value, wanted: Range) -> bool:
    low, high = wanted.low, wanted.high
    above = low is None or value > low or (value == low and not wanted.low_open)  # type: ignore[operator]
    below = high is None or value < high or (value == high and not wanted.high_open)  # type: ignore[operator]
    return above and below


def _order_codec(group: Group) -> Callable[[Keys], dict[str, Any]]:
    """The query of the field ``order`` for a range of keys; it holds doubles as longs."""
    codec = group.codec
    if codec.order != "double":
        return lambda keys: codec.encode(*keys)

    def as_longs(keys: Keys) -> dict[str, Any]:
        named = zip(("gte", "lte"), keys, strict=True)
        return {name: codec.term(float(key)) for name, key in named if key is not None}

    return as_longs


def _as_terms(codec: Codec, asked: Range) -> dict[str, Any]:
    """A range of terms that contains the range in question, and may be wider."""
    made: dict[str, Any] = {}
    if asked.low is not None:
        low = cut_down(asked.low, _LONGEST_RANGED)
        made["gt" if asked.low_open and low == asked.low else "gte"] = codec.term(low)
    if asked.high is not None:
        high = cut_up(asked.high, _LONGEST_RANGED)
        if high is not None:
            made["lt" if asked.high_open or high != asked.high else "lte"] = codec.term(high)
    return made


def _beyond(group: Group, asked: Range, *, expensive: bool) -> list[Query]:
    """Proofs by an object's least and greatest string that a range is out of reach, where the 16 bytes are not sharp.

    The stored bounds may be cut, outward: the least is less than or equal to the real one, the greatest greater.
    """
    codec, proofs = group.codec, list[Query]()
    assert isinstance(codec, Bytes)
    least, greatest = f"{group.name}.min", f"{group.name}.max"
    if asked.low is not None:
        if asked.low_open and codec.term(asked.low) is not None:
            proofs.append({"term": {greatest: codec.term(asked.low)}})
        if expensive and not codec.sharp(asked.low):
            proofs.append({"range": {greatest: {"lt": codec.term(cut_down(asked.low, _LONGEST_RANGED))}}})
    if asked.high is not None:
        if asked.high_open and codec.term(asked.high) is not None:
            proofs.append({"term": {least: codec.term(asked.high)}})
        high = None if not expensive or codec.sharp(asked.high) else cut_up(asked.high, _LONGEST_RANGED)
        if high is not None:
            proofs.append({"range": {least: {"gt" if high == asked.high else "gte": codec.term(high)}}})
    return proofs


def _answered(ask: Callable[[], Query | None]) -> Query | None:
    try:
        return ask()
    except Unanswerable:
        return None


def _of_prints(group: Group, question: Question) -> Query | None:
    if not group.spaces or not isinstance(question, AnyOf):
        return None
    if len(question.values) * len(group.spaces) > _MAX_TERMS_OF_ALL:
        return None
    return holds_none(f"{group.name}.prints", group.spaces, question.values, MAX_TERMS)


def _of_boxes(group: Group, question: Question) -> Query | None:
    match question:
        case HasNotNull():
            return all_of([_known(group), _at_most(group, 0)])
        case Meets(box):
            if group.boxes == 0:
                return all_of([_known(group), _at_most(group, 0)])
            if len(box) != group.axes:
                return None
            codec = codec_of(DataType("double"))
            sides = [codec.bounds(side) for side in box]
            slots = [[f"{group.name}.box_{at}.{side}" for side in _sides(group)] for at in range(group.boxes)]
            missed: list[Query] = []
            for at, fields in enumerate(slots):
                reached = [_intersects(field, codec, keys) for field, keys in zip(fields, sides) if keys is not None]
                # A slot is proved to be missed where all of its axes are seen, and to be unused by the count.
                seen = all_of([*map(exists, fields), none_of([all_of(reached)] if None not in sides else [])])
                missed.append(any_of([_at_most(group, at), seen]))
            return all_of([_known(group), *missed])
    return None


def _sides(group: Group) -> list[str]:
    return [group.side(axis) for axis in range(group.axes)]


def _at_most(group: Group, boxes: int) -> Query:
    return {"range": {f"{group.name}.count": {"lte": boxes}}}
