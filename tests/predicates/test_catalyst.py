"""What Spark really sends for SQL, read: a change of Catalyst's shapes is noticed. And text, tested as Spark does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType

from es_skipping.predicates.codec import has_opaque
from es_skipping.predicates.normal import normalise
from es_skipping.predicates.read import read_operand, read_predicate
from es_skipping.predicates.show import show
from es_skipping.predicates.text import text_test
from es_skipping.predicates.tree import TextTest
from es_skipping.spark.relations import expression_tree


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    running = SparkSession.getActiveSession()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
        .newSession()
    )
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    if running is None:
        session.stop()


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("catalyst") / "t")
    spark.sql(
        """SELECT cast(id AS int) x, id l, cast(id AS float) f, cast(id AS double) d, cast(id AS decimal(10,2)) m,
                  cast(id AS string) s, id > 2 b, date'2024-01-01' dt, timestamp'2024-01-01 00:00:00' ts,
                  timestamp_ntz'2024-01-01 00:00:00' tn, named_struct('a', cast(id AS int)) st
           FROM range(5)"""
    ).coalesce(1).write.parquet(path)
    spark.udf.register("is_a", lambda text: text == "a", BooleanType())
    return spark.read.parquet(path)


EXPECTED = [
    ("x = 5", "x = 5"),
    ("5 < x", "x > 5"),
    ("NOT (x = 5)", "x <> 5"),
    ("x <=> 5", "x = 5"),
    ("NOT (x <=> 5)", "x <> 5 OR x IS NULL"),
    ("x IS DISTINCT FROM 5", "x <> 5 OR x IS NULL"),
    ("x IN (1, 2, NULL)", "x IN (1, 2)"),
    ("x NOT IN (1, 2, NULL)", "FALSE"),
    ("x IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10)", "x IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 1 more)"),
    ("x NOT IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0, NULL)", "FALSE"),
    ("x BETWEEN 1 AND 3", "x >= 1 AND x <= 3"),
    ("x NOT BETWEEN 1 AND 3", "x < 1 OR x > 3"),
    ("b", "b = TRUE"),
    ("NOT b", "b = FALSE"),
    ("b IS NOT TRUE", "b = FALSE OR b IS NULL"),
    ("x > 2.5", "x > 2"),
    ("x > 99999999999", "FALSE"),
    ("l = 5.0D", "l = 5"),
    ("d = double('NaN')", "d = DOUBLE 'NaN'"),
    ("NOT isnan(d)", "d <> DOUBLE 'NaN' OR d IS NULL"),
    ("d < -0.0D", "d < 0.0"),
    ("f > 0.1D", "f >= 0.10000000149011612"),
    ("m > 1.234", "m > 1.23"),
    ("m > 0.5D", "m > 0.50"),
    ("s LIKE 'a%'", "startswith(s, 'a')"),
    ("s NOT LIKE '%a%'", "NOT contains(s, 'a')"),
    ("s LIKE 'a%b'", "length(s) >= 2 AND startswith(s, 'a') AND endswith(s, 'b')"),
    ("s LIKE 'a_b'", "s LIKE 'a_b'"),
    ("s LIKE 'a!%%' ESCAPE '!'", "startswith(s, 'a%')"),
    ("s LIKE ANY ('a%', '%b')", "startswith(s, 'a') OR endswith(s, 'b')"),
    ("s RLIKE '^ab+'", "s RLIKE '^ab+'"),
    ("NOT s RLIKE '^ab+'", "s NOT RLIKE '^ab+'"),
    ("dt > '2024-01-05'", "dt > DATE '2024-01-05'"),
    ("ts > '2024-01-05'", "ts > TIMESTAMP '2024-01-05 00:00:00Z'"),
    ("dt = timestamp'2024-01-05 00:00:00'", "dt = DATE '2024-01-05'"),
    ("cast(tn AS date) >= date'2024-01-05'", "tn >= TIMESTAMP_NTZ '2024-01-05 00:00:00'"),
    ("st.a > 3", "st.a > 3"),
    ("st IS NOT NULL", "st IS NOT NULL"),
    ("s COLLATE UTF8_LCASE = 'A'", "<values of type string collate UTF8_LCASE are not compared>"),
    ("CASE WHEN x > 3 THEN true ELSE false END", "x > 3 AND x IS NOT NULL"),
    ("NOT CASE WHEN x > 3 THEN true ELSE false END", "x <= 3 OR x IS NULL"),
    ("coalesce(x > 3, false)", "x IS NOT NULL AND x > 3"),
    ("(x > 3) IS UNKNOWN", "x IS NULL"),
    ("cast(l AS int) > 3", "CAST(l AS INT) > 3"),
    ("cast(x AS string) = '5'", "CAST(x AS STRING) = '5'"),
    ("lower(s) = 'a'", "lower(s) = 'a'"),
    ("parse_url(s, 'HOST') = 'a'", "parseurl(s, 'HOST') = 'a'"),  # an evaluator's method
    ("url_decode(s) = 'a'", "decode(s, TRUE) = 'a'"),  # a static one
    ("hex(aes_encrypt(s, '0000111122223333')) = 'a'", "<aesEncrypt is not understood>"),
    ("is_a(s)", "udf:is_a(s)"),
    ("NOT is_a(s)", "NOT udf:is_a(s)"),
    ("rand() > 0.5", "<not deterministic>"),
    ("from_json(s, 'a int').a = 5", "<JsonToStructs is not understood>"),
    ("x = 1 OR (l = 2 AND NOT (d = 3 OR s IS NULL))", "x = 1 OR (l = 2 AND d <> 3.0 AND s IS NOT NULL)"),
]


@pytest.mark.parametrize(("sql", "text"), EXPECTED, ids=[sql for sql, _ in EXPECTED])
def test_sql_as_it_arrives(table: DataFrame, sql: str, text: str) -> None:
    assert show(normalise(read_predicate(expression_tree(table.selectExpr(sql))))) == text


def test_functions_that_spark_replaced_differ_by_all_that_they_were_given(table: DataFrame) -> None:
    """A function may be gone from the plan; what stands in its place must tell it from its relatives."""
    texts = [
        "parse_url(s, 'HOST')",
        "try_parse_url(s, 'HOST')",
        "parse_url(s, 'PATH')",
        "url_decode(s)",
        "url_encode(s)",
    ]
    texts += ["encode(s, 'utf-8')", "is_valid_utf8(s)", "luhn_check(s)"]
    trees = [read_operand(expression_tree(table.selectExpr(text))) for text in texts]
    assert len(set(trees)) == len(texts)
    assert not any(map(has_opaque, trees))
    assert trees == [read_operand(expression_tree(table.selectExpr(text))) for text in texts]


def test_two_uses_of_a_function_look_alike(table: DataFrame) -> None:
    assert read_predicate(expression_tree(table.selectExpr("is_a(s)"))) == read_predicate(
        expression_tree(table.selectExpr("is_a(s)"))
    )


STRINGS = [
    "",
    "a",
    "ab",
    "abc",
    "a\nb",
    "ab\n",
    "ab\r\n",
    "a\u0085b",
    "a\u2028",
    "é",
    "a1_",
    "A b",
    "50%",
    "a\\b",
    "\U0001f600",
    "a\U0001f600b",
    "-",
    "a.b",
    "x\x0by",
    "\u0661",
]
LIKES = [
    "",
    "%",
    "_",
    "__",
    "a%",
    "%b",
    "%b%",
    "a_b",
    "a%b%",
    r"50\%",
    r"a\\b",
    "%\n",
    "_%_",
    "a.b",
    "é",
    "a$",
    "^a",
    "[a]",
]
RLIKES = [
    "",
    "a",
    "^a",
    "b$",
    "^ab$",
    "^$",
    "a.b",
    "^.$",
    "^..$",
    "^.{3}$",
    "[a-c]+",
    "^[^a]",
    r"\d",
    r"\w$",
    r"\s",
    r"a\.b",
    "a?b",
    "^a*b$",
    "b{2,}",
    "é",
    "[^a-z0-9]b$",
    r"^\W$",
    "-",
    "[_ ]",
]


@pytest.mark.parametrize(("test", "patterns"), [("like", LIKES), ("rlike", RLIKES)])
def test_patterns_decide_as_in_spark(spark: SparkSession, test: TextTest, patterns: list[str]) -> None:
    pairs = [(value, pattern) for value in STRINGS for pattern in patterns]
    rows = (
        spark.createDataFrame(pairs, "v string, p string")
        .selectExpr("v", "p", f"v {test.upper()} p AS truth")
        .collect()
    )
    assert len(rows) == len(pairs)
    decided = 0
    for row in rows:
        truth = text_test(test, row.v, row.p)
        decided += truth is not None
        assert truth in {None, row.truth}, (row.v, row.p)
    assert decided > 0.8 * len(rows)
