"""Exit codes and streams of the command line, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pyspark
import pytest

import es_skipping
from es_skipping.catalog import CoveredSnapshot, DatasetDefinition, IndexDefinition
from es_skipping.cli import main
from es_skipping.cli.session import key_values
from es_skipping.errors import SettingError
from es_skipping.predicates.types import parse_type
from es_skipping.stores.registry import open_store

EVERY = (
    ["demo"],
    ["index", "create"],
    ["index", "refresh"],
    ["index", "describe"],
    ["index", "drop"],
    ["index", "list"],
)


OUT_OF_RANGE = [
    ["layout", "analyze", "/lake", "--queries", "q.sql", *option.split()]
    for option in ("--features -1", "--holdout 1", "--storage-budget 0.5", "--min-rows 0")
]


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--help"],
        *([*command, "--help"] for command in EVERY),
        ["explain", "--help"],
        ["reindex", "--help"],
        ["kibana", "export", "--help"],
        ["kibana", "import", "--help"],
        ["doctor", "--help"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "usage: es-skipping" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"es-skipping {es_skipping.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["index"],
        ["nonsense"],
        ["index", "create"],
        ["index", "create", "/lake"],
        ["demo", "--scale", "0"],
        *OUT_OF_RANGE,
    ],
    ids=" ".join,
)
def test_what_is_not_understood_exits_with_2_and_says_nothing_on_stdout(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "usage: es-skipping" in streams.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "create", "/lake", "MinMaks(ts)"], "unknown index type 'MinMaks'"),
        (["index", "drop", "/lake"], "pass either indexes or --all"),
        (["index", "drop", "/lake", "MinMax(ts)", "--all"], "pass either indexes or --all"),
        (["index", "list", "--store", "https://me:secret@es:9200"], "spark.es_skipping.store.url"),
        (["index", "list", "--store", "http://127.0.0.1:1"], "127.0.0.1:1"),
        (["index", "refresh", "/lake", "--conf", "novalue"], "--conf novalue has no value"),
    ],
)
def test_an_error_exits_with_1_and_one_line_before_spark_is_started(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("es-skipping: ")
    assert message in streams.err
    assert "Traceback" not in streams.err
    assert "secret" not in streams.err


def test_key_values_never_show_a_value() -> None:
    assert key_values(["a.b=1", "c=", "d=x=y"], "--conf") == {"a.b": "1", "c": "", "d": "x=y"}
    with pytest.raises(SettingError) as error:
        key_values(["=hunter2"], "--conf")
    assert "hunter2" not in str(error.value)


def test_listing_an_empty_local_store_starts_no_spark(tmp_path: Path) -> None:
    script = (
        "import sys; from es_skipping.cli import main\n"
        f"code = main(['index', 'list', '--output', 'json', '--store', {str(tmp_path / 'store')!r}])\n"
        "assert not any(name.startswith('pyspark') for name in sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_doctor_without_spark_names_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--no-spark", "--output", "json"]) == 0
    found = {finding["check"]: finding["state"] for finding in json.loads(capsys.readouterr().out)}
    assert found == {"python": "good", "es_skipping": "good", "pyspark": "good", "java": "good"} | {
        "settings": "good",
        "store": "note",
    }


def test_a_doctor_and_a_list_name_the_snapshots_of_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    index = IndexDefinition("minmax(a)", "MinMax", ("a",), "intervals", parse_type("int"))
    snapshots = ((CoveredSnapshot("7", "stamp"), "snapshot 7"), (None, "an unknown snapshot"))
    for format, (covered, said) in product(("delta", "iceberg"), snapshots):
        definition = DatasetDefinition("orders", ("file:/lake/orders",), format, (index,))
        with open_store(str(tmp_path)).change(replace(definition, covered=covered)) as change:
            change.publish()
        assert main(["doctor", "--no-spark", "--json", "--store", str(tmp_path)]) == 0
        (table,) = [one for one in json.loads(capsys.readouterr().out) if one["check"] == "tables"]
        assert table["found"] == f"orders: {format}, the metadata covers {said}"
        assert main(["index", "list", "--json", "--store", str(tmp_path)]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["format"], listed["snapshot"]) == (format, None if covered is None else "7")


def test_a_doctor_looks_at_the_pyspark_that_is_imported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever was installed: PYTHONPATH and SPARK_HOME come first."""
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    monkeypatch.setattr(pyspark, "__file__", "/opt/spark/python/pyspark/__init__.py")
    assert main(["doctor", "--no-spark", "--json"]) == 1
    (found,) = [finding for finding in json.loads(capsys.readouterr().out) if finding["check"] == "pyspark"]
    assert found["state"] == "bad"
    assert found["found"].startswith("3.5.1 at /opt/spark/python/pyspark; ")


def test_a_doctor_finds_a_misspelt_setting_a_bad_value_and_a_store_that_is_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    misspelt = ["--conf", "spark.es_skipping.store.timeuot=2s", "--conf", "spark.es_skipping.query.budget=soon"]
    assert main(["doctor", "--no-spark", "--store", "http://127.0.0.1:1", *misspelt]) == 1
    told = capsys.readouterr().out
    assert "did you mean spark.es_skipping.store.timeout?" in told
    assert "spark.es_skipping.query.budget is 'soon'" in told
    assert "127.0.0.1:1" in told


def test_what_cannot_be_read_or_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "chart.svg")

    monkeypatch.setattr("es_skipping.cli.output.Console.rows", full)
    assert main(["index", "list", "--store", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "es-skipping: [Errno 28] No space left on device: 'chart.svg'\n"


def test_copying_from_an_empty_store_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "wrong"
    assert main(["reindex", "--all", "--store", str(store), "--to", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().err == f"no datasets in the store {store}: nothing to copy\n"


def test_a_reader_that_leaves_is_no_error() -> None:
    """Such as `head`."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "es_skipping.cli", "kibana", "export", "-"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
