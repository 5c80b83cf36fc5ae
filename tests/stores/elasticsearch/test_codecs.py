"""Order keys and terms, without a server: keys keep the order, terms keep the value."""

from __future__ import annotations

import ipaddress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_skipping.clauses.questions import Range
from es_skipping.predicates.types import DataType, parse_type
from es_skipping.stores.base import FORMAT_VERSION
from es_skipping.stores.elasticsearch.bools import merged
from es_skipping.stores.elasticsearch.codecs import Unanswerable, codec_of, common_prefix
from es_skipping.stores.elasticsearch.names import column_of, field_of, group_name
from es_skipping.stores.elasticsearch.templates import COMPONENTS, TEMPLATES, load
from tests.stores import strategies

TYPES = pytest.mark.parametrize("type", strategies.TYPES, ids=str)
PREFIXES = (b"", b"a", b"abc" * 30, b"\xff" * 3, "\U0001f600".encode())


@TYPES
@given(data=st.data())
def test_keys_keep_the_order_whatever_the_prefix(type: DataType, data: st.DataObject) -> None:
    one, other = data.draw(strategies.values(type)), data.draw(strategies.values(type))
    codec = codec_of(type, data.draw(st.sampled_from(PREFIXES)))
    if one == other:
        assert codec.key(one) == codec.key(other)
    elif codec.exact:
        assert (one < other) == (codec.key(one) < codec.key(other))  # type: ignore[operator]
    else:
        assert codec.key(min(one, other)) <= codec.key(max(one, other))


@TYPES
@pytest.mark.parametrize("prefix", PREFIXES, ids=len)
def test_edges_keep_their_order(type: DataType, prefix: bytes) -> None:
    """Those that begin with the prefix, and those on either side of it."""
    codec, edges = codec_of(type, prefix), list(strategies.EDGES[type])
    if type.name == "string":
        edges = sorted({*edges, "abc" * 30 + "x", "abb", "abd", "\U0001f600x", "zz"})
    keys = [codec.key(edge) for edge in edges]
    assert keys == sorted(keys)
    assert not codec.exact or len(set(keys)) == len(keys)


def test_an_end_between_two_values() -> None:
    """Of a range whose end is no value of the type, the nearest value inside belongs to it, open or not."""
    codec = codec_of(parse_type("decimal(10,2)"))
    low, high = Decimal("0.005"), Decimal("0.025")
    for is_open in (False, True):
        assert codec.bounds(Range(low, high, is_open, is_open)) == (1, 2)
    assert codec.bounds(Range(Decimal("0.01"), Decimal("0.04"), True, True)) == (2, 3)


@TYPES
@given(data=st.data())
def test_terms_give_the_value_back_and_tell_values_apart(type: DataType, data: st.DataObject) -> None:
    codec = codec_of(type)
    one, other = data.draw(strategies.values(type)), data.draw(strategies.values(type))
    assert codec.value(codec.term(one)) == one
    assert (codec.term(one) == codec.term(other)) == (one == other)


def test_an_address_comes_back_however_short_it_is_written() -> None:
    """As an aggregation does: a vocabulary is read from it."""
    codec = codec_of(parse_type("decimal(38,2)"))
    for text in (
        "0.00",
        "0.01",
        "5.00",
        "-5.00",
        "7777.00",
        "655.36",
        "-655.36",
        "9" * 36 + ".99",
        "-" + "9" * 36 + ".99",
    ):
        term = codec.term(Decimal(text))
        assert codec.value(str(ipaddress.IPv6Address(term))) == codec.value(term) == Decimal(text)


@TYPES
@given(data=st.data())
def test_a_value_in_a_range_has_its_key_in_the_bounds(type: DataType, data: st.DataObject) -> None:
    """Soundness of every range question: what lies in the range is never outside the keys asked for."""
    codec = codec_of(type, data.draw(st.sampled_from(PREFIXES)))
    value = data.draw(strategies.values(type))
    low = data.draw(st.one_of(st.none(), strategies.values(type)))
    high = data.draw(st.one_of(st.none(), strategies.values(type)))
    asked = Range(low, high, data.draw(st.booleans()), data.draw(st.booleans()))
    above = low is None or low < value or (low == value and not asked.low_open)  # type: ignore[operator]
    below = high is None or value < high or (value == high and not asked.high_open)  # type: ignore[operator]
    bounds, key = codec.bounds(asked), codec.key(value)
    inside = bounds is not None and (bounds[0] is None or bounds[0] <= key) and (bounds[1] is None or key <= bounds[1])
    assert inside or not (above and below)
    if codec.exact:
        assert inside == (above and below)


@TYPES
@given(data=st.data())
def test_exact_ranges_come_back(type: DataType, data: st.DataObject) -> None:
    codec = codec_of(type)
    if codec.exact:
        low, high = sorted([data.draw(strategies.values(type)), data.draw(strategies.values(type))])
        assert codec.decode(codec.encode(codec.key(low), codec.key(high))) == (low, high)


def test_values_of_other_types_are_refused() -> None:
    for type, wrong in (("int", 1.0), ("int", True), ("boolean", 1), ("double", 1), ("string", b"a"), ("binary", "a")):
        with pytest.raises(Unanswerable):
            codec_of(parse_type(type)).key(wrong)
    for nothing in (float("nan"), "\ud800"):
        with pytest.raises(Unanswerable):
            codec_of(parse_type("double" if isinstance(nothing, float) else "string")).key(nothing)
    with pytest.raises(Unanswerable):
        codec_of(parse_type("string collate UTF8_LCASE"))


@given(st.binary(min_size=16, max_size=16))
def test_addresses_are_addresses(raw: bytes) -> None:
    codec = codec_of(parse_type("binary"))
    assert ipaddress.IPv6Address(codec.encode_key(codec.key(raw))).packed == raw


@given(st.text(min_size=1))
def test_column_names_come_back(name: str) -> None:
    field = field_of(name)
    assert column_of(field) == name
    assert not set(field) & set('.* \\/?<>|",#:')


def test_groups_of_fields_have_names_of_their_own() -> None:
    used: set[str] = set()
    for columns in (["a", "b_c"], ["a_b", "c"], ["a.b", "c"], ["A"], ["a"], [], ["x" * 500]):
        name = group_name("MinMax", columns, used)
        assert name not in used and "_" in name and len(name) < 250
        used.add(name)


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 9)), min_size=1, max_size=20), st.integers(1, 6))
def test_merged_ranges_cover_all_that_was_asked(pairs: list[tuple[int, int]], most: int) -> None:
    asked = [(low, low + width) for low, width in pairs]
    found = merged(asked, most)
    assert len(found) <= most
    for low, high in asked:
        assert any(a is not None and b is not None and a <= low and high <= b for a, b in found)
    assert merged([*asked, (None, -60), (70, None)], 3)[0][0] is None


def test_a_common_prefix_ends_at_a_separator() -> None:
    assert common_prefix([b"https://host/path/one thing", b"https://host/path/other"]) == b"https://host/path/"
    assert common_prefix([b"short", b"shore"]) == b""
    assert common_prefix([b"the only value there is so far"]) == b""


def test_templates_are_whole() -> None:
    for name in (*COMPONENTS, *TEMPLATES):
        body = load(name, "mine")
        assert body["_meta"]["managed_by"] == "es_skipping" and body["_meta"]["format"] == FORMAT_VERSION
    template = load("objects", "mine")
    assert template["index_patterns"] == ["mine-objects-*"]
    assert set(template["composed_of"]) == {"mine-settings", "mine-objects-mappings", "mine@custom"}
    assert load("objects-mappings")["template"]["mappings"]["dynamic"] == "strict"
