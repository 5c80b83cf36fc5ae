"""The notebooks: run from top to bottom, kept without what they printed, and opened by the compose file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.cli.running import IN_PAGES

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def run(notebook: Any, folder: Path) -> Any:
    """The notebook with its outputs, by this Python, in a folder of its own."""
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "python3", "language": "python"}
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable  # a kernel that the user registered elsewhere must not run it
    return client.execute()


def outputs(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield output.get("text", "")
            yield from (str(data) for data in output.get("data", {}).values())


@pytest.fixture
def small_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    lines = [f"{key} {value}\n" for key, value in IN_PAGES.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("ES_SKIPPING_STORE_URL", raising=False)


EXPECTED = {
    "first-steps": [r"8\d of 90 objects skipped", r"MinMax\(level\)"],
    "places-on-a-map": [r"3\d of 40 objects skipped", r"\b\d of 40 files are opened", "<svg"],
}
"""What the outputs hold. Spark samples to cut files by range, so that a file more or less may be opened."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, small_sessions: None) -> None:
    done = run(nbformat.read(path, as_version=4), tmp_path)
    printed = "\n".join(outputs(done))
    assert [text for text in EXPECTED[path.stem] if not re.search(text, printed)] == [], printed


def test_a_notebook_that_fails_is_noticed(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError):
        run(notebook, tmp_path)


def test_notebooks_are_kept_without_outputs() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(EXPECTED)
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == [], path


def test_the_compose_files_notebook_opens_them() -> None:
    compose = (ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8")
    assert "cp /home/jovyan/es_skipping/examples/notebooks/*.ipynb ." in compose
    assert "--LabApp.default_url=/lab/tree/first-steps.ipynb" in compose
