"""A layout from the command line: what it would save, writing it, and when it is due again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.running import run_commands
from tests.layout.manifests import blocks_of


def test_analyze_apply_status(tmp_path: Path) -> None:
    data = tmp_path / "sales"
    data.mkdir()
    kinds = [f"kind{at * 7919 % 10}" for at in range(2_000)]
    pq.write_table(pa.table({"kind": kinds, "amount": [at % 50 for at in range(2_000)]}), data / "sales.parquet")
    queries = tmp_path / "queries.sql"
    queries.write_text("\n".join(f"kind = 'kind{at % 3}' AND amount < 10" for at in range(40)) + "\n", encoding="utf-8")
    whole = tmp_path / "whole.sql"
    from_file = f"FROM parquet.`{data}`"
    selects = [f"SELECT kind {from_file} WHERE kind = 'kind{at % 3}' AND amount < 10" for at in range(12)]
    whole.write_text(";\n".join(selects) + "\n", encoding="utf-8")
    moved = tmp_path / "moved.sql"
    moved.write_text("\n".join(f"amount = {at}" for at in range(20, 40)) + "\n", encoding="utf-8")
    json = ["--output", "json"]
    given = ["--queries", str(queries), "--min-rows", "50"]
    target = tmp_path / "laid_out"
    groups = ["--queries", str(whole), "--min-rows", "50", "--opening", "0", "--system"]
    grouped, svg = tmp_path / "groups", tmp_path / "groups.svg"
    by_name, unknown = tmp_path / "by_name.sql", tmp_path / "unknown.sql"
    of_sold = "SELECT kind FROM sold WHERE (kind = 'kind1' OR kind = 'kind2') AND amount < 10;\n"
    by_name.write_text(5 * of_sold, encoding="utf-8")
    unknown.write_text("(amount < 3 OR kind = 'kind2') AND amount < 10;\nSELECT kind FROM sld;\n", encoding="utf-8")
    tree = tmp_path / "tree"
    (
        designed,
        treed,
        unfit,
        unopened,
        viewed,
        misspelt,
        analyzed,
        told,
        lost,
        applied,
        again,
        fine,
        due,
        none,
        refused,
        written,
        fits,
        moved_on,
    ) = run_commands(
        tmp_path,
        ["layout", "design", str(data), *given, "--sample", "1000", "--page", str(tmp_path / "page.html"), *json],
        ["layout", "apply", str(data), *given, "--system", "tree", "--to", str(tree), *json],
        ["layout", "analyze", str(data), *given, "--system", "tree", "--features", "3"],
        ["layout", "analyze", str(data), *given, "--opening", "5"],
        [
            "layout",
            "analyze",
            str(data),
            "--queries",
            str(by_name),
            "--min-rows",
            "50",
            "--view",
            f"sold={data}",
            *json,
        ],
        ["layout", "analyze", str(data), "--queries", str(unknown), "--view", f"sold={data}"],
        ["layout", "analyze", str(data), *given, "--chart", str(tmp_path / "workload.svg"), *json],
        ["layout", "analyze", str(data), *given],
        ["layout", "apply", str(data), *given],
        ["layout", "apply", str(data), *given, "--to", str(target), "--index", "MinMax(amount)", *json],
        ["layout", "apply", str(data), *given, "--to", str(target)],
        ["layout", "status", str(target), "--queries", str(queries)],
        ["layout", "status", str(target), "--queries", str(moved), *json],
        ["layout", "status", str(data)],
        ["layout", "apply", str(data), *groups, "gsop", "--to", str(grouped), "--index", "MinMax(amount)"],
        [
            "layout",
            "apply",
            str(data),
            *groups,
            "gsopr",
            "--storage-budget",
            "1.5",
            "--picture",
            str(svg),
            "--to",
            str(grouped),
            *json,
        ],
        ["layout", "status", str(grouped), "--queries", str(queries)],
        ["layout", "status", str(grouped), "--queries", str(moved), *json],
    )
    assert designed.code == 0, designed.err
    assert {one["layout"] for one in designed.json["layouts"]} == {"SOP", "QueryTree", "Z-order", "Hilbert"}
    assert designed.json["recommended"] == designed.json["layouts"][0]["layout"]
    assert '"sizes":[12,25,50,100,200]' in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert treed.code == 0, treed.err
    assert treed.json["indexed"] == treed.json["blocks"] == len(list(tree.glob("*.parquet")))
    assert unfit.code == 1
    assert "--features and --min-support do not go with --system tree" in unfit.err
    assert unopened.code == 1
    assert "--opening needs --system gsop or gsopr; sop has no column groups" in unopened.err
    assert viewed.code == 0, viewed.err
    assert viewed.json["workload"].startswith("5 queries")
    assert misspelt.code == 1
    assert "es-skipping: the query 'SELECT kind FROM sld' cannot be planned: [TABLE_OR_VIEW_NOT_FOUND]" in misspelt.err
    assert analyzed.code == 0, analyzed.err
    assert analyzed.json["workload"].startswith("40 queries, 4 different filters. A layout will pay")
    assert analyzed.json["predicted_share_of_rows_read"] < 0.2
    assert (tmp_path / "workload.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "kind = 'kind0'" in told.out
    assert lost.code == 1
    assert "--to PATH or --to-table NAME" in lost.err
    assert applied.code == 0, applied.err
    assert applied.json["rows"] == 2_000
    assert applied.json["indexed"] == applied.json["blocks"] == len(list(target.glob("*.parquet")))
    assert again.code == 1
    assert "is not empty" in again.err
    assert fine.code == 0, fine.err
    assert "it need not be laid out again" in fine.out
    assert due.code == 4
    assert due.json["helped"] == 0
    assert none.code == 1
    assert "has no record of a layout" in none.err
    assert refused.code == 1
    assert "do not support --index" in refused.err
    assert written.code == 0, written.err
    assert written.json["blocks"] == blocks_of(grouped)
    assert 1 <= written.json["storage"] <= 1.2
    assert "kind in group 0" in svg.read_text(encoding="utf-8")
    assert fits.code == 0, fits.err
    assert "they need not be made again" in fits.out
    assert moved_on.code == 4, moved_on.err
    assert (moved_on.json["helped"], moved_on.json["unindexed"], moved_on.json["read"]) == (0, 0, 1)
