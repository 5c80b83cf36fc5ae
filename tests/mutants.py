"""Proves that the tests notice wrong code: each patch in ``tests/mutations`` breaks one line, a named test must fail.

    make mutants                                     all of them
    python -m tests.mutants tests/mutations/01*      some of them

A patch begins with two lines, ``Wrong:`` what it breaks and ``Fails:`` the test (``path::name``) that must notice.
Patches are applied one at a time to a clone of the last commit; before that the named tests must pass there. A patch
that no test notices is a defect of the tests, to be mended by a test.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
MUTATIONS: Final = ROOT / "tests" / "mutations"
_JAR: Final = "es_skipping/spark/jvm/es-skipping.jar"
_HEADER: Final = re.compile(r"Wrong: (?P<wrong>.+)\nFails: (?P<test>\S+::\S+)\n\n(?=--- )")
_PYTHONS: Final = {
    "tests/connectors/test_delta.py": ".venv-spark42",
    "tests/connectors/test_delta_cases.py": ".venv-spark42",
    "tests/connectors/test_delta_search.py": ".venv-spark42",
    "tests/connectors/test_delta_changes.py": ".venv-spark42",
    "tests/connectors/test_delta_on_commit.py": ".venv-spark42",
    "tests/connectors/test_iceberg.py": ".venv-spark41",
    "tests/connectors/test_iceberg_cases.py": ".venv-spark40",
    "tests/connectors/test_iceberg_limits.py": ".venv-spark40",
    "tests/connectors/test_iceberg_changes.py": ".venv-spark41",
    "tests/connectors/test_iceberg_on_commit.py": ".venv-spark41",
}
"""The virtual environments of tests that need another Spark than the newest."""
_NOTICED, _UNNOTICED, _UNUSABLE = "noticed", "NOT NOTICED", "UNUSABLE"


@dataclass(frozen=True)
class Mutation:
    """One wrong line.

    Parameters
    ----------
    path
        Of the patch.
    wrong
        What it breaks, in words.
    test
        The test that must fail.
    """

    path: Path
    wrong: str
    test: str

    @classmethod
    def read(cls, path: Path) -> Mutation:
        header = _HEADER.match(path.read_text(encoding="utf-8"))
        if header is None:
            raise ValueError(f"{path} does not begin with the lines Wrong: and Fails: and an empty one")
        return cls(path, header["wrong"], header["test"])

    @property
    def java(self) -> bool:
        return ".java\n" in self.path.read_text(encoding="utf-8")


@contextmanager
def clone(source: Path) -> Iterator[Path]:
    """A clean clone of the last commit, with the jar that the checkout has."""
    with tempfile.TemporaryDirectory(prefix="es-skipping-mutants-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "clone", "-q", str(source), str(tree)], check=True)
        if (source / _JAR).is_file():
            shutil.copy2(source / _JAR, tree / _JAR)
        yield tree


def _run(tree: Path, tests: Sequence[str]) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    by_python: dict[str, list[str]] = {}
    for test in tests:
        venv = _PYTHONS.get(test.partition("::")[0])
        by_python.setdefault(sys.executable if venv is None else str(ROOT / venv / "bin" / "python"), []).append(test)
    code, printed = 0, ""
    for python, chosen in by_python.items():
        done = subprocess.run(
            [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen],
            cwd=tree, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        code, printed = code or done.returncode, printed + done.stdout
    return code, printed


def _build(tree: Path) -> None:
    subprocess.run([sys.executable, "hatch_build.py"], cwd=tree, check=True, capture_output=True)


def judge(tree: Path, mutation: Mutation) -> str:
    """Apply a patch, run its test, take the patch back."""
    patch = ["git", "apply", "-C1", "--recount", str(mutation.path)]
    applied = subprocess.run(patch, cwd=tree, capture_output=True, text=True, check=False)
    if applied.returncode:
        return f"{_UNUSABLE}: {applied.stderr.strip().splitlines()[0]}"
    try:
        if mutation.java:
            _build(tree)
        code, printed = _run(tree, [mutation.test])
    finally:
        subprocess.run(["git", "checkout", "-q", "--", "."], cwd=tree, check=True)
        if mutation.java:
            _build(tree)
    if code == 1 and re.search(r"^FAILED ", printed, re.MULTILINE):
        return _NOTICED
    return _UNNOTICED if code == 0 else f"{_UNUSABLE}: pytest ended with {code}: {printed.strip().splitlines()[-1:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Break one line at a time and see that the tests notice.")
    parser.add_argument("patches", nargs="*", type=Path, help="default: all in tests/mutations")
    given = parser.parse_args()
    mutations = [Mutation.read(path.resolve()) for path in sorted(given.patches or MUTATIONS.glob("*.patch"))]
    begun = time.monotonic()
    bad = 0
    with clone(ROOT) as tree:
        code, printed = _run(tree, sorted({mutation.test for mutation in mutations}))
        if code:
            print(printed)
            print("the named tests do not pass on the code as it is")
            return 1
        width = max(len(mutation.path.stem) for mutation in mutations)
        for mutation in mutations:
            found = judge(tree, mutation)
            bad += found != _NOTICED
            print(f"{mutation.path.stem:{width}}  {found:11}  {mutation.test}  ({mutation.wrong})", flush=True)
    print(f"{len(mutations)} mutations, {len(mutations) - bad} noticed, in {time.monotonic() - begun:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
