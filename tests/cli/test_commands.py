"""The life of a dataset's indexes, from the command line."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from es_skipping.stores.registry import open_store
from tests.cli.running import run_commands


def write(folder: Path, name: str, numbers: range) -> None:
    """One object of a dataset, made long ago: a very young one is left for the next refresh."""
    import os

    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": list(numbers), "name": [f"n{number % 7}" for number in numbers]}), folder / name)
    os.utime(folder / name, (1_700_000_000, 1_700_000_000))


def test_create_list_describe_explain_refresh_drop(tmp_path: Path) -> None:
    data = tmp_path / "events"
    for part in range(4):
        write(data, f"part-{part}.parquet", range(part * 100, part * 100 + 100))
    json = ["--output", "json"]
    sql = f"SELECT * FROM parquet.`{data}` WHERE id = 123"
    before, created, again, ensured, listed, *more = run_commands(
        tmp_path,
        ["index", "list"],
        ["index", "create", str(data), "MinMax(id)", "ValueList(name)", *json],
        ["index", "create", str(data), "MinMax(id)", *json],
        ["index", "create", str(data), "MinMax(id)", "Prefix(name, length=1)", "--ensure", *json],
        ["index", "list", "--json"],
        ["reindex", dataset_id(data), "--store", str(tmp_path / STORE), "--to", str(tmp_path / "copy"), "--json"],
        ["index", "describe", str(data), *json],
        ["explain", sql],
        ["index", "drop", str(data), "ValueList(name)"],
        ["index", "list", *json],
        ["index", "drop", str(data), "--all"],
        ["index", "list", *json],
        ["index", "describe", str(data)],
        ["index", "refresh", str(data)],
        ["index", "drop", str(data), "--all"],
    )
    copied, described, explained, dropped, rest, wiped, empty, *after = more
    assert before.code == 0
    assert before.out == ""
    assert re.search(r"^no indexes in the store \S*/_es_skipping$", before.err, re.MULTILINE)
    assert created.code == 0, created.err
    assert created.json["unknown"] == created.json["degraded"] == []
    assert created.json["added"] == 4
    assert created.json["failed"] == []
    assert "indexing" in created.err
    assert again.code == 1
    assert "MinMax" in again.err or "minmax" in again.err
    assert again.out == ""
    assert ensured.code == 0, ensured.err
    assert [row["index"] for row in listed.json] == ["MinMax(id)", "ValueList(name)", "Prefix(name, length=1)"]
    assert {row["objects"] for row in listed.json} == {4}
    columns = ["id", "dataset", "format", "index", "protection", "objects", "metadata_bytes", "refreshed", "snapshot"]
    assert list(listed.json[0]) == columns
    assert (listed.json[0]["format"], listed.json[0]["snapshot"]) == ("parquet", None)
    assert copied.code == 0, copied.err
    assert [(row["dataset"], row["objects"]) for row in copied.json] == [(listed.json[0]["id"], 4)]
    assert described.code == 0, described.err
    assert len(described.json["indexes"]) == 3
    assert explained.code == 0, explained.err
    assert "id" in explained.out
    assert dropped.code == 0, dropped.err
    assert [row["index"] for row in rest.json] == ["MinMax(id)", "Prefix(name, length=1)"]
    assert wiped.code == 0, wiped.err
    assert empty.json == []
    bare, undone, nothing = after
    assert re.search(rf"^no indexes of {data} in the store \S*/_es_skipping$", bare.err, re.MULTILINE)
    assert bare.out.startswith("objects      4\n")
    assert undone.code == 1
    assert f"{data} has no index to refresh in the store " in undone.err
    assert re.search(rf"^no indexes of {data} in the store \S+: nothing was dropped$", nothing.err, re.MULTILINE)
    assert wiped.err.splitlines()[-1] == f"dropped all indexes of {data}"


def test_a_hashed_index_gets_a_new_key_from_the_data(tmp_path: Path) -> None:
    data, keys = tmp_path / "events", [tmp_path / name for name in ("old", "new")]
    for part in range(2):
        write(data, f"part-{part}.parquet", range(part * 10, part * 10 + 10))
    for number, key in enumerate(keys):
        key.write_text(f"{number + 1}1" * 32)
    store = ["--store", str(tmp_path / STORE)]
    hashed = f"ValueList(name, protect='hashed', key='file:{keys[0]}')"
    planned = ["reindex", str(data), "--to-key", f"file:{keys[1]}", "--json", *store]
    created, dry, rotated, again, listed = run_commands(
        tmp_path,
        ["index", "create", str(data), hashed, "MinMax(id)", "--json"],
        [*planned, "--dry-run"],
        planned,
        planned,
        ["index", "list", "--json"],
    )
    assert created.code == 0, created.err
    named = {"dataset": dataset_id(data), "format": "parquet", "snapshot": None}
    assert dry.json == [{**named, "rotated": ["valuelist(name)"], "objects": 2, "superseded": []}]
    assert rotated.code == 0, rotated.err
    (row,) = rotated.json
    assert (row["rotated"], row["objects"]) == (["valuelist(name)"], 2)
    assert "anew" in rotated.err
    assert [one["rotated"] for one in again.json] == [[]]
    assert {one["index"]: one["protection"] for one in listed.json} == {
        "ValueList(name)": "hashed",
        "MinMax(id)": "plain",
    }
    definition = open_store(str(tmp_path / STORE)).datasets()[0].definition
    assert {one.protection.key for one in definition.indexes if one.protection} == {f"file:{keys[1]}"}


STORE = Path("warehouse", "_es_skipping")
"""Where the store is that needs no setting."""


def dataset_id(data: Path) -> str:
    """As `index list` tells it: readable, and made from the place alone."""
    return f"{data.name}-{hashlib.sha256(f'file:{data}'.encode()).hexdigest()[:12]}"


def test_refresh_reports_what_it_could_not_read_and_exits_with_3(tmp_path: Path) -> None:
    data = tmp_path / "events"
    for part in range(3):
        write(data, f"part-{part}.parquet", range(part * 10, part * 10 + 10))
    (first,) = run_commands(tmp_path, ["index", "create", str(data), "ValueList(id)", "--output", "json"])
    assert first.code == 0, first.err
    write(data, "part-3.parquet", range(30, 40))
    (data / "part-4.parquet").write_bytes(b"this is no Parquet file")
    (second,) = run_commands(tmp_path, ["index", "refresh", str(data), "--output", "json"])
    assert second.code == 3, second.err
    assert second.json["unchanged"] == 3
    assert [Path(failure["path"]).name for failure in second.json["failed"]] == ["part-4.parquet"]
    assert "not indexed: " in second.err


def test_a_doctor_with_spark_skips_three_of_four_objects_and_leaves_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (tmp_path / "file").touch()
    doctor, listed, sick = run_commands(
        tmp_path,
        ["doctor", "--output", "json", "--store", str(store)],
        ["index", "list", "--output", "json", "--store", str(store)],
        ["doctor", "--json", "--store", str(tmp_path / "file" / "store")],
    )
    assert doctor.code == 0, doctor.out
    (trip,) = [finding for finding in doctor.json if finding["check"] == "round trip"]
    assert trip["state"] == "good"
    assert trip["found"].startswith("a query read 1 of 4 objects")
    assert listed.json == []
    assert "\nbuilding and querying a small dataset in " in f"\n{doctor.err}"
    assert sick.code == 1
    assert [finding["check"] for finding in sick.json if finding["state"] == "bad"] == ["round trip"]
    assert "\nbuilding and querying a small dataset failed after " in f"\n{sick.err}"


def test_a_dataset_or_query_that_cannot_be_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    nowhere, unread, unknown, column = run_commands(
        tmp_path,
        ["index", "create", str(tmp_path / "nowhere"), "MinMax(id)"],
        ["explain", "SELEKT 1"],
        ["explain", "SELECT nothing FROM here"],
        ["explain", "SELECT nothing FROM range(3)"],
    )
    for done, expected in ((nowhere, "nowhere"), (unread, "SELEKT"), (unknown, "here"), (column, "nothing")):
        assert done.code == 1
        assert done.out == ""
        assert expected in done.err
        assert done.err.splitlines()[-1].startswith("es-skipping: ")
        assert "Traceback" not in done.err
        assert '"exception"' not in done.err, "PySpark's log of errors"


def test_advise_chooses_and_applies(tmp_path: Path) -> None:
    data = tmp_path / "events"
    for part in range(8):
        write(data, f"part-{part}.parquet", range(part * 100, part * 100 + 100))
    advise = ["advise", str(data), "--budget", "64k", "--filter", "id = 123", "--filter", "name = 'n3'"]
    shown, refused, applied, described, hopeless = run_commands(
        tmp_path,
        advise,
        [*advise, "--drop"],
        [*advise, "--apply", "--json"],
        ["index", "describe", str(data), "--json"],
        ["advise", str(data), "--budget", "64k", "--filter", "name = 'n3'", "--apply"],
    )
    assert shown.code == 0, shown.err
    assert "create" in shown.out
    assert refused.code == 1
    assert "--drop needs --apply" in refused.err
    assert applied.code == 0, applied.err
    assert [one["action"] for one in applied.json["indexes"]] == ["create"]
    assert 0 < applied.json["expected"] < 0.5, "the other filter reads every file"
    assert len(described.json["indexes"]) == 1
    assert hopeless.code == 0, hopeless.err
    assert "drop" in hopeless.out
