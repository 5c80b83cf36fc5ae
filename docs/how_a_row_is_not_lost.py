"""Makes ``explanation/how-a-row-is-not-lost.md``: one filter on its way to a query of Elasticsearch, made by the code.

The tables of truth are those that ``tests/clauses/test_evaluate.py`` checks.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import es_skipping as esk
from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import Ask, Clause
from es_skipping.clauses.evaluate import all_hold, any_holds
from es_skipping.clauses.merge import Labeller, merge_clause
from es_skipping.clauses.metadata import Intervals, Metadata, Values
from es_skipping.clauses.text import clause_text
from es_skipping.indexes.base import Index, Target
from es_skipping.indexes.registry import readable_id
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.show import show
from es_skipping.predicates.tree import Column, Comparison, Literal, Not, Or, Predicate
from es_skipping.predicates.types import DataType
from es_skipping.stores.elasticsearch.fields import Group, with_prefix, with_room_for
from es_skipping.stores.elasticsearch.query import skip_query

__all__ = ["page"]

_TEXT = """\
<!-- Made by `make docs` from docs/how_a_row_is_not_lost.py; changes belong there. -->

# How a row is not lost

This page follows one filter from Spark to the query that Elasticsearch receives, and says at each step why no row can
be lost. The code made the expressions, the query and the tables below.

```sql
SELECT * FROM sales WHERE {filter}
```

The dataset has two indexes, `MinMax(price)` and `ValueList(city)`. `price` is a `DOUBLE`, so it may be NaN.

## 1. Spark's filter becomes a typed tree

The filter reaches the package as late as Spark plans the scan. The tree has types: `10.0` is a double, `'Oslo'` is a
string without a collation. A node that the reader does not know becomes *opaque*. Every index ignores an opaque node.

## 2. NOT moves to the leaves

```text
{normal}
```

Spark's logic has three values, and a row is in the result only if the filter is *true*. `NOT` of a leaf is another
leaf that is true of exactly the rows for which the first is *false*: `<` becomes `>=`, `=` becomes `<>`. Rows for which
the leaf is null are in neither. NaN is greater than every number in Spark, so `price >= 10.0` is true of NaN.

No `NOT` is left. This matters, because the complement of a condition on metadata proves nothing: an object that *may*
hold Oslo may hold Bergen too.

## 3. Leaves become questions, and the questions one clause

```text
{clause}
```

Each index labels the nodes that it can answer. A clause *represents* a filter: if any row of an object satisfies the
filter, the clause is true of the object. So an object may be skipped if its metadata makes the clause false.

- `city <> 'Oslo'` asks for a value other than Oslo.
- `price >= 10.0` asks for a value from 10 on, or for a NaN, because bounds never contain NaN.

## 4. Metadata answers true, false or unknown

Metadata may be missing: the object is new, a statistic is absent, a role hides a field. Then the answer is *unknown*.
Answers combine as follows, and **only *false* skips**:

{logic}

So one part of an `AND` that is false is enough to skip, and all parts of an `OR` must be false. Some answers of a
`MinMax` or `GapList` over whole numbers:

{answers}

## 5. The query asks for proof that the clause is false

A server that answers "which objects may match" loses every object that lacks the statistic, because a range over a
missing field matches nothing. So the query asks the opposite, *which objects are proved to hold no match*:

```json
{query}
```

Read it from the top. An object is skipped if its document has a format that proves something, and

- `known` lists the value list, and `empty` says that it holds no value, or all its values (`count` of them) are among
  the excluded ones; **or**
- `known` lists the bounds, the object holds no NaN, and `empty` says that it holds no value, or the range *exists* and
  does not meet the wanted one.

Each proof needs something that is *there*: `known`, `empty`, `exists`, a count. A field that is missing, hidden or not
yet written proves nothing, and Spark reads the object.

## 6. The answer is checked before anything is skipped

- The server must answer in full: no failed shard, no time-out. Otherwise every object is kept.
- The answer names objects by their identity: path, length and modification time together. The package drops a file from
  Spark's listing only if the listing has the same three. A file that was written again has another identity.
- The index must have been built under the schema, reader options and session settings that this query reads with, as
  far as they can change a value.
- Any error on the way means that Spark reads every file, with one warning.

Each of these steps has tests that break it on purpose: `tests/mutations` holds a wrong version of each rule, and a
named test must fail for each. [The promises](soundness.md) say what was run, and
[what is skipped](../reference/what-is-skipped.md) lists filters one by one.
"""

_DOUBLE, _STRING, _INT = DataType("double"), DataType("string"), DataType("int")
_PRICE, _CITY = Column(("price",), _DOUBLE), Column(("city",), _STRING)
_FILTER: Predicate = Not(
    Or((Comparison("=", _CITY, Literal("Oslo", _STRING)), Comparison("<", _PRICE, Literal(10.0, _DOUBLE))))
)
_INDEXES: tuple[tuple[Index, IndexDefinition, Column, Metadata], ...] = (
    (
        esk.MinMax("price"),
        IndexDefinition("minmax(price)", "MinMax", ("price",), "intervals", _DOUBLE),
        _PRICE,
        Intervals(((1.0, 9.0),), 0, 0),
    ),
    (
        esk.ValueList("city"),
        IndexDefinition("valuelist(city)", "ValueList", ("city",), "values", _STRING),
        _CITY,
        Values(frozenset({"Oslo"}), 0),
    ),
)
_ODD = ("IN ()", "TRUE", "'a'", "starting", "point", "and <= 2", "value = 3")
"""Questions that no filter asks of whole numbers; the tests have them."""
_NAMES = {True: "true", False: "false", None: "unknown"}


def page() -> str:
    """The page's text."""
    normal = normalise(_FILTER)
    labellers = [Labeller(index, Target(found.id, (column,), (column.type,))) for index, found, column, _ in _INDEXES]
    clause = merge_clause(normal, labellers)
    types = {found.id: found.value_type for _, found, _, _ in _INDEXES}
    texts = {
        "filter": show(_FILTER),
        "normal": show(normal),
        "clause": clause_text(clause, types, readable_id),
        "logic": "\n".join(_logic()),
        "answers": "\n".join(_answers()),
        "query": json.dumps(_query(clause), indent=1),
    }
    text = _TEXT
    for name, value in texts.items():
        text = text.replace("{" + name + "}", value)
    return text


def _query(clause: Clause) -> object:
    groups = {}
    for _, index, _, metadata in _INDEXES:
        group = with_prefix(Group(index.id.replace("(", "_").rstrip(")"), index), [metadata])
        groups[index.id] = with_room_for(group, metadata)
    return skip_query(clause, groups, lambda _: {"Oslo", "Bergen"})


def _logic() -> Iterator[str]:
    yield "| a | b | a AND b | a OR b |"
    yield "|---|---|---|---|"
    for a, b in itertools.combinations_with_replacement((True, False, None), 2):
        yield f"| {_NAMES[a]} | {_NAMES[b]} | {_NAMES[all_hold((a, b))]} | {_NAMES[any_holds((a, b))]} |"


def _answers() -> Iterator[str]:
    from tests.clauses.test_evaluate import GAPPED, NO_VALUES, ONE_TO_FIVE, ONLY_FIVE, TABLE, UNKNOWN_VALUES

    held = {
        ONE_TO_FIVE: "values from 1 to 5, no null",
        ONLY_FIVE: "only 5, no null",
        GAPPED: "values from 1 to 2 and 8 to 9, 3 nulls",
        NO_VALUES: "no value, 4 nulls",
        UNKNOWN_VALUES: "bounds unknown, no null",
    }
    yield "| the object holds | does it hold | answer |"
    yield "|---|---|---|"
    for metadata, text in held.items():
        for of, question, answer in TABLE:
            asked = clause_text(Ask("it", question), {"it": _INT}).partition(": ")[2] if of == metadata else ""
            if asked and not any(odd in asked for odd in _ODD) and asked != "a value ":
                yield f"| {text} | {asked} | {_NAMES[answer]} |"
