"""TPC-H on one denormalised table: the table, the templates of its queries, and their parameters.

Each template is the WHERE of a TPC-H query on lineitem joined with all other tables; the join conditions fall away.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_skipping.layout import Template
from es_skipping.layout.workload.templates import zipf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONTH = "trunc(o_orderdate, 'MM')"
"""The coarse partitions."""
FILTERED = (
    *("o_orderdate", "l_shipdate", "l_commitdate", "l_receiptdate", "l_discount", "l_quantity", "l_returnflag"),
    *("l_shipmode", "l_shipinstruct", "c_mktsegment", "cr_name", "c_nationkey", "s_nationkey"),
    *("p_type", "p_brand", "p_container", "p_size"),
)
"""The columns that the queries of chapter 3 filter by."""
CURVED = ("l_shipdate", "l_quantity", "cr_name", "c_mktsegment", "l_discount", "l_shipmode")
"""The columns of the Z-curve: those that most queries of chapter 3 filter by."""

CHAPTER_3 = (3, 5, 6, 8, 10, 12, 14, 19)
CHAPTER_4 = (3, 5, 6, 11, 12, 16, 19, 20, 21, 22)
CHAPTER_5 = (2, 3, 5, 6, 7, 8, 11, 12, 16, 17, 19, 20, 21, 22)

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
BRANDS = tuple(f"Brand#{first}{second}" for first in range(1, 6) for second in range(1, 6))
NATIONS = (
    *("ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "CHINA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA"),
    *("INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "ROMANIA"),
    *("RUSSIA", "SAUDI ARABIA", "UNITED KINGDOM", "UNITED STATES", "VIETNAM"),
)
CONTAINERS = tuple(
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
COLOURS = tuple(
    colour
    for line in (
        "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished",
        "chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab",
        "firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki",
        "lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty",
        "moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red",
        "rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle",
        "tomato turquoise violet wheat white yellow",
    )
    for colour in line.split()
)
YEARS = tuple(date(year, 1, 1) for year in range(1993, 1998))

ARM = (
    "(p_brand = :b{0} AND p_container IN ({1}) AND l_quantity BETWEEN :q{0} AND :q{0} + 10 "
    "AND p_size BETWEEN 1 AND {2} AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')"
)

COLUMNS: dict[int, tuple[str, ...]] = {
    2: (
        *("s_acctbal", "s_name", "sn_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment"),
        *("p_size", "p_type", "sr_name", "ps_supplycost"),
    ),
    3: ("l_orderkey", "l_extendedprice", "l_discount", "o_orderdate", "o_shippriority", "c_mktsegment", "l_shipdate"),
    5: ("sn_name", "l_extendedprice", "l_discount", "cr_name", "c_nationkey", "s_nationkey", "o_orderdate"),
    6: ("l_extendedprice", "l_discount", "l_shipdate", "l_quantity"),
    7: ("sn_name", "cn_name", "l_shipdate", "l_extendedprice", "l_discount"),
    8: ("o_orderdate", "l_extendedprice", "l_discount", "sn_name", "cr_name", "p_type"),
    11: ("ps_partkey", "ps_supplycost", "ps_availqty", "sn_name"),
    12: ("l_shipmode", "o_orderpriority", "l_commitdate", "l_receiptdate", "l_shipdate"),
    16: ("p_brand", "p_type", "p_size", "ps_suppkey"),
    17: ("l_extendedprice", "p_brand", "p_container", "l_quantity"),
    19: (
        *("l_extendedprice", "l_discount", "p_brand", "p_container"),
        *("l_quantity", "p_size", "l_shipmode", "l_shipinstruct"),
    ),
    20: ("s_name", "s_address", "sn_name", "p_name", "l_shipdate", "ps_availqty", "l_quantity"),
    21: ("s_name", "sn_name", "o_orderstatus", "l_receiptdate", "l_commitdate"),
    22: ("c_phone", "c_acctbal"),
}
"""The columns of the table that each query of TPC-H reads, join keys aside. Three differ in number from the
dissertation's: 12 of q2 (there 11), 4 of q17 (3) and 7 of q20 (3)."""

TEXTS: dict[int, str] = {
    2: "p_size = :size AND p_type LIKE :type AND sr_name = :region",
    3: "c_mktsegment = :segment AND o_orderdate < :day AND l_shipdate > :day",
    5: "cr_name = :region AND c_nationkey = s_nationkey "
    "AND o_orderdate >= :year AND o_orderdate < :year + INTERVAL 1 YEAR",
    6: "l_shipdate >= :year AND l_shipdate < :year + INTERVAL 1 YEAR "
    "AND l_discount BETWEEN :discount - 0.01 AND :discount + 0.01 AND l_quantity < :quantity",
    7: "((sn_name = :a AND cn_name = :b) OR (sn_name = :b AND cn_name = :a)) "
    "AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
    8: "cr_name = :region AND p_type = :type AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
    10: "l_returnflag = 'R' AND o_orderdate >= :month AND o_orderdate < :month + INTERVAL 3 MONTHS",
    11: "sn_name = :nation",
    12: "l_shipmode IN (:modes) AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
    "AND l_receiptdate >= :year AND l_receiptdate < :year + INTERVAL 1 YEAR",
    14: "l_shipdate >= :month AND l_shipdate < :month + INTERVAL 1 MONTH",
    16: "p_brand <> :brand AND p_type NOT LIKE :type AND p_size IN (:sizes)",
    17: "p_brand = :brand AND p_container = :container",
    20: "p_name LIKE :color AND sn_name = :nation AND l_shipdate >= :year AND l_shipdate < :year + INTERVAL 1 YEAR",
    21: "sn_name = :nation AND o_orderstatus = 'F' AND l_receiptdate > l_commitdate",
    22: "substring(c_phone, 1, 2) IN (:codes) AND c_acctbal > 0",
    19: " OR ".join(
        ARM.format(number, containers, size)
        for number, containers, size in (
            (1, "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", 5),
            (2, "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", 10),
            (3, "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", 15),
        )
    ),
}

Draw = Callable[[random.Random, Sequence[Any]], Any]


def uniform(dice: random.Random, values: Sequence[Any]) -> Any:
    return values[dice.randrange(len(values))]


def skewed(dice: random.Random, values: Sequence[Any]) -> Any:
    """Zipf with exponent 3 over the values in their order, as the dissertation's skewed run draws all but dates."""
    weights = zipf(values, 3)
    return dice.choices(list(weights), list(weights.values()))[0]


def parameters(query: int, draw: Draw) -> Callable[[random.Random], Mapping[str, Any]]:
    """The substitution of the TPC-H specification; dates are always drawn uniformly."""

    def drawn(dice: random.Random) -> Mapping[str, Any]:
        def some(values: Sequence[Any]) -> Any:
            return draw(dice, values)

        if query == 3:
            return {"segment": some(SEGMENTS), "day": date(1995, 3, 1 + dice.randrange(31))}
        if query == 5:
            return {"region": some(REGIONS), "year": uniform(dice, YEARS)}
        if query == 6:
            discount = f"0.0{some(range(2, 10))}"
            return {"year": uniform(dice, YEARS), "discount": float(discount), "quantity": some((24, 25))}
        if query == 8:
            return {"region": some(REGIONS), "type": some(TYPES)}
        if query == 10:
            month = dice.randrange(24)
            return {"month": date(1993 + (month + 1) // 12, (month + 1) % 12 + 1, 1)}
        if query == 12:
            first = some(MODES)
            return {"modes": [first, some([mode for mode in MODES if mode != first])], "year": uniform(dice, YEARS)}
        if query == 14:
            month = dice.randrange(60)
            return {"month": date(1993 + month // 12, month % 12 + 1, 1)}
        if query == 2:
            metal = some(("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"))
            return {"size": some(range(1, 51)), "type": f"%{metal}", "region": some(REGIONS)}
        if query == 7:
            first = some(NATIONS)
            return {"a": first, "b": some([nation for nation in NATIONS if nation != first])}
        if query in (11, 21):
            return {"nation": some(NATIONS)}
        if query == 16:
            two = " ".join(some(TYPES).split()[:2])
            return {"brand": some(BRANDS), "type": f"{two}%", "sizes": dice.sample(range(1, 51), 8)}
        if query == 17:
            return {"brand": some(BRANDS), "container": some(CONTAINERS)}
        if query == 20:
            return {"color": f"{some(COLOURS)}%", "nation": some(NATIONS), "year": uniform(dice, YEARS)}
        if query == 22:
            return {"codes": [str(code) for code in dice.sample(range(10, 35), 7)]}
        assert query == 19
        return {
            **{f"b{arm}": some(BRANDS) for arm in (1, 2, 3)},
            "q1": some(range(1, 11)),
            "q2": some(range(10, 21)),
            "q3": some(range(20, 31)),
        }

    return drawn


def filters(each: int, seed: int, draw: Draw = uniform, queries: Sequence[int] = CHAPTER_3) -> list[tuple[int, str]]:
    """So many filters of each template, shuffled: ``(query, SQL)``."""
    dice = random.Random(seed)
    made = [
        (query, Template(TEXTS[query], parameters(query, draw)).instance(dice))
        for query in queries
        for _ in range(each)
    ]
    dice.shuffle(made)
    return made


TABLES = ("lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation", "region")

SMALL = "customer, part, supplier, partsupp, cn, cr, sn, sr"
JOINS = """
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN part ON p_partkey = l_partkey
JOIN supplier ON s_suppkey = l_suppkey
JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
JOIN cn ON cn_nationkey = c_nationkey
JOIN cr ON cr_regionkey = cn_regionkey
JOIN sn ON sn_nationkey = s_nationkey
JOIN sr ON sr_regionkey = sn_regionkey
"""


def table(spark: SparkSession, folder: Path, scale: float, columns: Sequence[str] = ("*",)) -> Path:
    """The denormalised table as Parquet, made once: all its 68 columns, or some, which is enough to count rows."""
    target = folder / f"tpch-{scale:g}{'' if columns == ('*',) else '-narrow'}"
    if (target / "_SUCCESS").exists():
        return target
    raw = folder / f"raw-{scale:g}"
    program = Path(sys.executable).with_name("tpchgen-cli")
    if not raw.exists():
        command = [str(program), "parquet", "--scale-factor", f"{scale:g}", "--no-progress", "--output-dir", str(raw)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in TABLES:
        spark.read.parquet(str(raw / f"{name}.parquet")).createOrReplaceTempView(name)
    for side in ("c", "s"):
        for name, letter in (("nation", "n"), ("region", "r")):
            renamed = ", ".join(f"{c} AS {side}{c}" for c in spark.table(name).columns)
            spark.sql(f"SELECT {renamed} FROM {name}").createOrReplaceTempView(f"{side}{letter}")
    selected = ", ".join(columns)
    query = f"SELECT /*+ BROADCAST({SMALL}) */ {selected} {JOINS}"
    spark.sql(query).write.mode("overwrite").parquet(str(target))
    shutil.rmtree(raw)
    return target
