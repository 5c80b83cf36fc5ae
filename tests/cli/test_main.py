"""Exit codes and streams of the command line, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import es_skipping
from es_skipping.cli import main
from es_skipping.cli.session import key_values
from es_skipping.errors import SettingError

EVERY = (
    ["demo"],
    ["index", "create"],
    ["index", "refresh"],
    ["index", "describe"],
    ["index", "drop"],
    ["index", "list"],
)


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
    [[], ["index"], ["nonsense"], ["index", "create"], ["index", "create", "/lake"], ["demo", "--scale", "0"]],
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
        (["index", "create", "/lake", "MinMaks(ts)"], "There is no index type 'MinMaks'"),
        (["index", "drop", "/lake"], "name the indexes to drop, or write --all"),
        (["index", "drop", "/lake", "MinMax(ts)", "--all"], "not both"),
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


def test_a_doctor_finds_a_misspelt_setting_a_bad_value_and_a_store_that_is_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    misspelt = ["--conf", "spark.es_skipping.store.timeuot=2s", "--conf", "spark.es_skipping.query.budget=soon"]
    assert main(["doctor", "--no-spark", "--store", "http://127.0.0.1:1", *misspelt]) == 1
    told = capsys.readouterr().out
    assert "did you mean spark.es_skipping.store.timeout?" in told
    assert "spark.es_skipping.query.budget is 'soon'" in told
    assert "127.0.0.1:1" in told
