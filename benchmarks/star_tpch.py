"""Rows of lineitem that TPC-H's joins read, if lineitem alone is laid out and its dimensions stay as they are.

Run: ``python -m benchmarks.star_tpch --scale 0.1 --rows 500`` (needs ``tpchgen-cli``; ten minutes on two cores). Writes
``docs/benchmarks/star_tpch.json``.

q3, q5, q8, q10, q12 and q14 of TPC-H on normalised tables, their parameters drawn as the specification says. One
workload makes the layout (`es_skipping.layout.SOP` with ``joins``, inside months of ``l_shipdate``), other queries are
counted: the rows that Spark's scan of lineitem returns, without pushed filters, as a share of the table. By *features*
alone, then with *bounds* too: least and greatest values of lineitem's dates, and the ranges of ``o_orderdate``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import es_skipping as esk
from benchmarks.layout_tpch import DOCS, session
from benchmarks.pages import stamp
from benchmarks.tpch_workload import TEXTS, parameters, uniform
from es_skipping import layout
from es_skipping.indexes.induced import Induced

TABLES = ("lineitem", "orders", "customer", "part", "supplier", "nation", "region")
_ORDERS = "FROM lineitem JOIN orders ON o_orderkey = l_orderkey"
_CUSTOMER = f"{_ORDERS} JOIN customer ON c_custkey = o_custkey"
_REGION = f"{_CUSTOMER} JOIN nation ON n_nationkey = c_nationkey JOIN region ON r_regionkey = n_regionkey"
JOINS = {
    3: _CUSTOMER,
    5: f"{_REGION} JOIN supplier ON s_suppkey = l_suppkey",
    8: f"{_REGION} JOIN part ON p_partkey = l_partkey",
    10: _ORDERS,
    12: _ORDERS,
    14: "FROM lineitem JOIN part ON p_partkey = l_partkey",
}
DATES = ("l_shipdate", "l_commitdate", "l_receiptdate")


def tables(spark: SparkSession, folder: Path, scale: float) -> Path:
    """The tables, each a directory; made once."""
    root = folder / f"star-{scale:g}"
    if not (root / "raw").exists():
        program = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(program), "parquet", "--scale-factor", f"{scale:g}", "--no-progress"]
        subprocess.run([*command, "--output-dir", str(root / "raw")], check=True, stdout=subprocess.DEVNULL)
        for name in TABLES:
            (root / name).mkdir()
            (root / "raw" / f"{name}.parquet").rename(root / name / "all.parquet")
    for name in TABLES:
        spark.read.parquet(str(root / name)).createOrReplaceTempView(name)
    return root


def queries(each: int, seed: int) -> list[tuple[int, str]]:
    """Whole queries, shuffled: ``(number, SQL)``."""
    dice = random.Random(seed)
    made = []
    for number, joins in JOINS.items():
        template = layout.Template(TEXTS[number].replace("cr_name", "r_name"), parameters(number, uniform))
        made += [(number, f"SELECT sum(l_extendedprice) {joins} WHERE {template.instance(dice)}") for _ in range(each)]
    dice.shuffle(made)
    return made


def rows_read(spark: SparkSession, sql: str) -> int:
    """The rows that the scan of lineitem returns."""
    frame = spark.sql(sql)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    pending, found = [plan], 0
    while pending:
        node = pending.pop()
        name = node.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            pending.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            pending.append(node.plan())
        elif name == "FileSourceScanExec" and "laid-out" in str(node.relation().location().rootPaths().head()):
            found += int(node.metrics().apply("numOutputRows").value())
        children = node.children()
        pending += [children.apply(at) for at in range(children.size())]
    return found


def counted(spark: SparkSession, held: list[tuple[int, str]], rows: int) -> dict[str, Any]:
    """The mean share of the rows, over all queries and by template."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for number, sql in held:
        shares[f"q{number}"].append(rows_read(spark, sql) / rows)
    every = [share for some in shares.values() for share in some]
    by_query = {name: round(sum(some) / len(some), 4) for name, some in sorted(shares.items())}
    return {"share": round(sum(every) / len(every), 4), "by query": by_query}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=0.1)
    options.add_argument("--folder", type=Path, default=Path("benchmark-data"))
    options.add_argument("--rows", type=int, default=500, help="least rows of a block")
    options.add_argument("--features", type=int, default=15)
    options.add_argument("--each", type=int, default=10, help="queries of each template to design for")
    options.add_argument("--tests", type=int, default=4, help="queries of each template to count")
    options.add_argument("--memory", default="3g")
    given = options.parse_args()
    spark = session(given.folder.resolve(), given.memory)
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    root = tables(spark, given.folder.resolve(), given.scale)

    def table(name: str) -> str:
        return f"parquet.`{root}/{name}`"

    orders = layout.ForeignKey("l_orderkey", f"{table('orders')}.o_orderkey")
    keys = [
        orders,
        layout.ForeignKey(f"{table('orders')}.o_custkey", f"{table('customer')}.c_custkey"),
        layout.ForeignKey(f"{table('customer')}.c_nationkey", f"{table('nation')}.n_nationkey"),
        layout.ForeignKey(f"{table('nation')}.n_regionkey", f"{table('region')}.r_regionkey"),
        layout.ForeignKey("l_partkey", f"{table('part')}.p_partkey"),
    ]
    sop = layout.SOP(
        esk.Dataset(spark, str(root / "lineitem")),
        min_rows=given.rows,
        features=given.features,
        within=["trunc(l_shipdate, 'MM')"],
        joins=keys,
    )
    plan = sop.fit(layout.QueryLog.from_sql(sop.df, [sql for _, sql in queries(given.each, 1)]), holdout=0)
    target = root / f"laid-out-{given.rows}"
    sop.write(str(target))
    spark.read.parquet(str(target)).createOrReplaceTempView("lineitem")
    held = queries(given.tests, 2)
    result: dict[str, Any] = {
        "command": f"python -m benchmarks.star_tpch --scale {given.scale:g} --rows {given.rows}",
        "rows": plan.rows,
        "blocks": plan.blocks,
        "features": list(plan.conditions),
        "by features": counted(spark, held, plan.rows),
    }
    esk.Dataset(spark, str(target)).create_indexes(*map(esk.MinMax, DATES), Induced(orders, bounds=["o_orderdate"]))
    result["with bounds"] = counted(spark, held, plan.rows)
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "star_tpch.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    spark.stop()


if __name__ == "__main__":
    main()
    print(stamp())
