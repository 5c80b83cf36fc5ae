"""Indexes of elements through Spark, on both stores: exactly which files a query reads, and never a row too few."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.build.elements import ElementsOf, elements_in
from es_skipping.errors import ColumnError
from tests.spark.building import metadata
from tests.spark.skipping_on_off import age, objects_by_predicate, reading

FILES: Final = 6

INDEXES: Final = (
    esk.ValueList("tags[]"),
    esk.Prefix("tags[]", length=1),
    esk.Suffix("tags[]", length=1),
    esk.MinMax("xs[]"),
    esk.GapList("xs[]", gaps=2),
    esk.BloomFilter("ids[]"),
    esk.Hybrid("ids[]", threshold=2),
    esk.MinMax("readings[].value"),
    esk.ValueList("readings[].`b c`"),
    esk.MinMax("readings[].inner[].z"),
    esk.MinMax("grid[][]"),
    esk.ValueList("map_keys(m)[]"),
    esk.MinMax("map_values(m)[]"),
    esk.ValueList("split(s, ',')[]"),
    esk.Formatted("tags[]", "reverse"),
    esk.Formatted("readings[].`b c`", "concat('r', {})"),
    esk.MinMax("m['l']"),
    esk.MinMax("`x[]`"),
)

FOUND: Final = {
    "array_contains(tags, 't3')": 1,
    "array_contains(tags, 't3') AND id = 3": 1,
    "array_contains(tags, 't3') OR exists(xs, x -> x = 50)": 2,
    "arrays_overlap(tags, array('t1', 'u2', NULL))": 2,
    "arrays_overlap(array('t1'), tags)": 1,
    "exists(tags, t -> t LIKE 't4%')": 1,
    "exists(tags, t -> endswith(t, '4'))": 1,
    "exists(tags, t -> t = 't1' OR t = 'u3')": 2,
    "exists(tags, t -> t IN ('a','b','c','d','e','f','g','h','i','j','k','t5'))": 1,
    "exists(tags, t -> upper(t) = 'T3')": FILES,  # another expression
    "exists(tags, t -> reverse(t) = '3t')": 1,
    "array_contains(transform(tags, t -> reverse(t)), '3t')": 1,
    "arrays_overlap(transform(tags, t -> reverse(t)), array('3t', '4u', NULL))": 2,
    "exists(transform(tags, t -> reverse(t)), r -> r IN ('3t', '4u'))": 2,
    "exists(transform(tags, t -> upper(t)), u -> u = 'T3')": FILES,
    "NOT forall(transform(tags, t -> reverse(t)), r -> r > '2')": 2,
    "exists(readings, r -> concat('r', r.`b c`) IN ('r4', 'r5'))": 2,
    "exists(tags, t -> t = concat('t', id))": FILES,
    "exists(xs, x -> x > 45)": 2,  # NaN is greater
    "exists(xs, x -> x > 5.4 AND x < 9)": 1,  # one element between
    "exists(xs, x -> x > 45) AND exists(xs, x -> x < 6)": 2,  # two elements
    "exists(xs, x -> x = double('NaN'))": 1,
    "exists(xs, x -> x > 1000)": 1,  # NaN is greater
    "exists(xs, x -> x IS NULL)": 2,
    "exists(tags, t -> t IS NULL)": 0,
    "exists(xs, x -> exists(xs, y -> y > 45 AND x < 6))": 2,
    "exists(xs, x -> exists(xs, x -> x > 45) AND x < 6)": 2,
    "size(filter(xs, x -> x > 45)) > 0": 2,
    "size(filter(xs, x -> x > 45)) <> 0": 2,
    "1 <= cardinality(filter(xs, x -> x > 45))": 2,
    "size(filter(xs, (x, i) -> x > 45 AND i = 1)) = 1": 2,
    "get(xs, 0) = 2.5": 1,
    "try_element_at(xs, -1) = 30": 1,
    "try_element_at(xs, -1) BETWEEN 25 AND 35": 3,  # asked as two conditions, which two elements may meet
    "array_contains(ids, 301L)": 1,
    "map_contains_key(m, 'k2')": 1,
    "m['k2'] = 2": 1,
    "m['k2'] > 2": 1,
    "try_element_at(m, 'k3') IS NOT NULL": 1,
    "m['l'] = 300": 1,
    "exists(map_values(m), v -> v > 450)": 1,
    "array_contains(readings.value, 4)": 1,
    "exists(readings, r -> r.`b c` = 3 AND r.value = 2)": 1,
    "exists(readings, r -> r.`b c` = 3 AND r.value = 4)": 0,
    "exists(readings, r -> exists(r.inner, i -> i.z = 52))": 1,
    "exists(grid, a -> exists(a, b -> b = 1007))": 1,
    "exists(grid, a -> array_contains(a, 1000))": 1,
    "array_contains(split(s, ','), 'b3')": 1,
    "get(split(s, ','), 1) = 'b2'": 1,
    "`x[]` = 3": 1,
    # what implies nothing of any element
    "NOT array_contains(tags, 't3')": FILES,
    "NOT exists(xs, x -> x > 5)": FILES,
    "forall(xs, x -> x > 1000000)": FILES,
    "NOT forall(xs, x -> x <= 45)": 2,
    "array_contains(tags, 't3') IS NULL": FILES,
    "m['k2'] IS NULL": FILES,
    "size(filter(xs, x -> x > 45)) = 0": FILES,
    "size(tags) = 0": FILES,
    "split_part(s, ',', 2) = ''": FILES,
    "split_part(s, ',', 7) <> 'b2'": FILES,
}


@pytest.fixture(scope="module")
def data(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """In each file a row with values of its own, and rows with empty and null arrays."""
    path = tmp_path_factory.mktemp("elements") / "data"
    full = base.range(0, FILES, 1, FILES).selectExpr(
        "id",
        "array(concat('t', id), concat('u', id)) AS tags",
        "array(id + 0.5D, CASE WHEN id < 2 THEN NULL WHEN id = 4 THEN double('NaN') ELSE id * 10D END) AS xs",
        "array(id * 100, id * 100 + 1, id * 100 + 2) AS ids",
        "array(named_struct('value', id, 'b c', id + 1, 'inner', array(named_struct('z', id + 50)))) AS readings",
        "array(array(1000 + id, NULL), array(1002 + id), NULL) AS grid",
        "map(concat('k', id), id, 'l', id * 100) AS m",
        "concat('a', id, ',b', id) AS s",
        "id AS `x[]`",
    )
    full.createOrReplaceTempView("full_rows")
    empty = "id, array() AS tags, array() AS xs, array() AS ids, array(NULL) AS readings, array() AS grid, map() AS m"
    nothing = ", ".join(f"NULL AS {name}" for name in ("tags", "xs", "ids", "readings", "grid", "m"))
    full.union(full.selectExpr(*empty.split(", "), "concat('a', id) AS s", "id")).union(
        full.selectExpr("id", *nothing.split(", "), "NULL", "id")
    ).repartitionByRange(FILES, "id").sortWithinPartitions("id").write.parquet(str(path))
    age(path)
    return str(path)


@pytest.fixture(params=["parquet", "elasticsearch"])
def on(spark: SparkSession, data: str, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if request.param == "elasticsearch":
        spark.conf.set("spark.es_skipping.store.url", request.getfixturevalue("elasticsearch_url"))
    spark.conf.set("spark.es_skipping.strict", "true")
    dataset = esk.Dataset(spark, data)
    result = dataset.create_indexes(*INDEXES)
    assert (result.added, result.failed, result.unknown) == (FILES, (), ())
    yield spark
    dataset.drop_indexes(all=True)


@pytest.mark.every(2)
def test_predicates(on: SparkSession, data: str) -> None:
    assert objects_by_predicate(on, lambda s: s.read.parquet(data), FOUND) == FOUND
    assert esk.Dataset(on, data).ensure_indexes(*INDEXES).unchanged == FILES, "made again they are the same"


def test_metadata_is_of_the_elements(spark: SparkSession, data: str) -> None:
    dataset = esk.Dataset(spark, data)
    dataset.create_indexes(esk.MinMax("xs[]"), esk.ValueList("readings[].value"), esk.MinMax("id"))
    found = [known for _, known in sorted(metadata(dataset).items())]
    assert [dict(one)["minmax(xs[])"].nulls for one in found] == [1, 1, 0, 0, 0, 0]
    assert [dict(one)["minmax(xs[])"].nans for one in found] == [0, 0, 0, 0, 1, 0]
    assert [dict(one)["valuelist(readings[].value)"].nulls for one in found] == [1] * FILES  # of a null struct
    row = dataset.describe().where("id = 'valuelist(readings[].value)'").first()
    assert row is not None
    assert (row["type"], row["columns"], row["objects"]) == ("ValueList", ["readings[].value"], FILES)
    with pytest.raises(esk.EsSkippingError, match=r"ValueList\(readings\[\].value\) exists already"):
        dataset.create_indexes(esk.ValueList("READINGS[].Value"))
    dataset.drop_indexes(esk.MinMax("xs[]"))
    assert reading(spark, f"SELECT * FROM parquet.`{data}` WHERE exists(xs, x -> x > 45)") == FILES


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (esk.ValueList("tags"), r"array<string>; index its elements: tags\[\]"),
        (esk.ValueList("id[]"), "not an array"),
        (esk.ValueList("readings[]"), "struct"),
        (esk.ValueList("grid[]"), r"index its elements: grid\[\]\[\]"),
        (esk.ValueList("readings[].nothing"), "does not exist|is neither"),
        (esk.ValueList("nothing[]"), "does not exist"),
        (esk.ValueList("[]"), "names no array"),
        (esk.ValueList("lower(tags[])"), "only names of fields"),
        (esk.Formatted("grid[][]", "abs"), "takes one"),
        (esk.Formatted("tags[]", "no_such_function"), "does not exist|is neither"),
        (esk.MetricDistance(["xs[]", "ids[]"], origin=[0, 0]), "only names of fields"),
        (esk.GeoBox("xs[]", "ids[]"), "indexes rows"),
    ],
)
def test_what_cannot_be_indexed_is_refused(spark: SparkSession, data: str, index: esk.Index, why: str) -> None:
    with pytest.raises(ColumnError, match=why):
        esk.Dataset(spark, data).create_indexes(index)


def test_text_formats_are_refused(spark: SparkSession, data: str, tmp_path: object) -> None:
    """A JSON array can differ with the columns that a query reads; this is not proved yet."""
    path = f"{tmp_path}/json"
    spark.read.parquet(data).select("tags").write.json(path)
    with pytest.raises(ColumnError, match="elements of json files cannot be indexed yet"):
        esk.Dataset(spark, path, format="json").create_indexes(esk.ValueList("tags[]"))


def test_the_syntax() -> None:
    assert elements_in("tags") is None
    assert elements_in("`tags[]`.`a``[]`") is None
    assert elements_in("concat(tags, array('[]', \"[]\", 'it\\'s []'))") is None
    assert elements_in("split(s, '[]')[]") == ElementsOf("split(s, '[]')", ((),))
    assert elements_in("a.b[][].`c.d`.e[]") == ElementsOf("a.b", ((), ("c.d", "e"), ()))
    for wrong in ("tags[]x", "tags[]..x", "tags[] + 1", "tags[].", "tags[].a b"):
        with pytest.raises(ColumnError, match="only names of fields"):
            elements_in(wrong)


def test_names_in_another_case(spark: SparkSession, data: str) -> None:
    esk.Dataset(spark, data).create_indexes(esk.MinMax("READINGS[].Value"))
    query = f"SELECT * FROM parquet.`{data}` WHERE exists(Readings, R -> r.VALUE = 4)"
    assert reading(spark, query) == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    query = query.replace("Readings, R -> r.VALUE", "readings, R -> R.value")
    assert reading(spark, query) == FILES, "an index is used under the setting that it was built with"
    with pytest.raises(ColumnError):
        esk.Dataset(spark, data).create_indexes(esk.ValueList("READINGS[].Value"))


# --- any filter ---------------------------------------------------------------------------------------------------

_NUMBERS: Final = ("0D", "-0D", "1D", "2D", "3D", "5D", "double('NaN')")


def random_sql(draw: random.Random, depth: int, scope: tuple[str, ...] = ()) -> str:
    """A filter over ``xs``, ``ns``, ``m`` and ``y``, in which tests of elements nest."""

    def deeper(*names: str) -> str:
        return random_sql(draw, depth - 1, (*scope, *names))

    form = draw.random()
    if depth and form < 0.15:
        return f"NOT ({deeper()})"
    if depth and form < 0.45:
        return f"({deeper()}) {draw.choice(['AND', 'OR'])} ({deeper()})"
    value, number = draw.choice(["xs", "xs", "map_values(m)"]), draw.choice(_NUMBERS)
    how = draw.choice(["=", "<=>", "<", "<=", ">", ">=", "<>"])
    if scope and (not depth or form < 0.75):
        tests = [f"{scope[-1]} {how} {number}", f"{draw.choice(scope)} IS NULL", f"{scope[0]} {how} {number}"]
        return draw.choice([*tests, f"abs({scope[-1]}) {how} {number}"])
    tests = [
        f"array_contains({value}, {number})",
        f"arrays_overlap({value}, array({number}, {draw.choice([*_NUMBERS, 'NULL'])}))",
        f"get({value}, {draw.choice('01')}) {how} {number}",
        f"try_element_at({value}, {draw.choice(['1', '-1'])}) {how} {number}",
        f"try_element_at(m, '{draw.choice('abc')}') {how} {number}",
        f"map_contains_key(m, '{draw.choice('abc')}')",
        f"y {how} {number}",
    ]
    if depth:
        name = draw.choice(["x", "x", "z"])
        tests += [
            f"exists({value}, {name} -> {deeper(name)})",
            f"exists(ns, a -> exists(a, {name} -> {deeper(name)}))",
            f"forall({value}, {name} -> {deeper(name)})",
            f"size(filter({value}, {name} -> {deeper(name)})) {how} {draw.choice(['0', '1', '-1'])}",
        ] * 3
    return draw.choice(tests)


@pytest.fixture(scope="module")
def any_rows(base: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    draw = random.Random(5)

    def number() -> float | None:
        return draw.choice([0.0, -0.0, 1.0, 2.0, 3.0, 5.0, float("nan"), None])

    def array() -> list[float | None] | None:
        return draw.choice([None, [], [number()], [number(), number()]])

    rows = [
        (
            file,
            array(),
            draw.choice([None, [], [array(), array()]]),
            {key: number() for key in draw.sample("abcd", 2)},
            number(),
        )
        for file in range(16)
        for _ in range(2)
    ]
    path = tmp_path_factory.mktemp("any") / "data"
    schema = "file int, xs array<double>, ns array<array<double>>, m map<string,double>, y double"
    frame = base.createDataFrame(rows, schema).repartition(16, "file")
    frame.write.partitionBy("file").parquet(str(path))
    age(path)
    return str(path)


@pytest.mark.parametrize("legacy", [False, True])
def test_no_filter_loses_a_row(spark: SparkSession, any_rows: str, legacy: bool) -> None:
    if legacy:  # then size(NULL) is -1
        spark.conf.set("spark.sql.ansi.enabled", "false")
        spark.conf.set("spark.sql.legacy.sizeOfNull", "true")
    esk.Dataset(spark, any_rows).create_indexes(
        esk.ValueList("xs[]"),
        esk.GapList("xs[]", gaps=2),
        esk.Formatted("xs[]", "abs"),
        esk.MinMax("ns[][]"),
        esk.ValueList("map_keys(m)[]"),
        esk.ValueList("map_values(m)[]"),
        esk.MinMax("y"),
    )
    draw = random.Random(7 + legacy)
    filters = list(dict.fromkeys(random_sql(draw, draw.randrange(4)) for _ in range(30)))
    read = objects_by_predicate(spark, lambda s: s.read.parquet(any_rows), filters)
    assert sum(count < 16 for count in read.values()) >= len(filters) // 3
