"""The mutations are readable, and each names a test that exists. (`make mutants` runs them.)"""

from __future__ import annotations

import ast
import subprocess

import pytest

from tests.mutants import MUTATIONS, ROOT, Mutation

PATCHES = sorted(MUTATIONS.glob("*.patch"))


def test_there_are_enough() -> None:
    assert len(PATCHES) >= 20


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_mutation_names_its_test(path) -> None:  # type: ignore[no-untyped-def]
    file, _, name = Mutation.read(path).test.partition("[")[0].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    if "::" in name:  # of a contract: its class is there, the test may be inherited
        assert name.partition("::")[0] in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    else:
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_mutation_still_applies(path) -> None:  # type: ignore[no-untyped-def]
    command = ["git", "apply", "--check", "-C1", "--recount", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
