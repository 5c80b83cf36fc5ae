"""Tries a release as a stranger would: the wheel in an empty environment, and every block of the docs.

    make release-check                   builds, compares, installs, runs README, tutorial and how-to pages
    python -m tests.release README.md    the same for some pages

The wheel is built twice and must be the same bytes, installed without a Java compiler, and used by a user whose home
can only be read. If the commit has a tag ``v...``, the tag must name the version of the package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from maven_build import version
from tests.cli.pages import PAGES
from tests.cli.running import IN_PAGES
from tests.elasticsearch_node import shared_url
from tests.processes import obey_permissions

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
EXTRAS = "spark,duckdb,polars,protect"
FOR_THE_PAGES = (
    "pytest>=8",
    "hypothesis>=6.100",
    "grpcio>=1.67",
    "grpcio-status>=1.67",
    "googleapis-common-protos>=1.65",
    "zstandard>=0.23",
)
"""What pages tell the reader to install: pytest for an index of one's own, the rest for Spark Connect."""


def run(command: Sequence[str | Path], **options: object) -> None:
    """Run a command and stop at a failure; what it prints is seen."""
    subprocess.run([str(word) for word in command], check=True, **options)  # type: ignore[call-overload]


def version_of_the_tag() -> str | None:
    """The version that a tag ``v...`` of this commit names, if it has one."""
    told = subprocess.run(
        ["git", "tag", "--points-at", "HEAD", "v*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    tags = told.stdout.split()
    return tags[0][1:] if tags else None


def check_the_tag() -> None:
    """A tag that names another version than the package must not become a release."""
    tag = version_of_the_tag()
    if tag is not None and tag != version():
        raise SystemExit(f"the tag v{tag} is on this commit, but es_skipping.__version__ is {version()!r}")
    print(f"version {version()}, {'tagged' if tag else 'not tagged'}")


def build(folder: Path) -> Path:
    """A wheel, built as pip builds it: isolated, against the pinned pyspark."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT])
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_twice(folder: Path) -> Path:
    """The wheel and the source distribution in ``dist``; a second wheel must be the same bytes."""
    wheels = [build(folder / name) for name in ("one", "two")]
    sums = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}
    if len(sums) != 1:
        raise SystemExit(f"two builds of the same commit differ: {sorted(sums)}")
    DIST.mkdir(exist_ok=True)
    print(f"built twice, the same bytes: {wheels[0].name} sha256 {sums.pop()}")
    code = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
    run([sys.executable, "-c", code, DIST], cwd=ROOT)
    return Path(shutil.copy(wheels[0], DIST))


def install(wheel: Path, folder: Path) -> Path:
    """Install into an empty environment, with no compiler on the path; returns its Python."""
    folder.chmod(0o755)
    run([python_for_others(), "-m", "venv", folder / "venv"])
    python = folder / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHONPATH")}
    environment["PATH"] = str(python.parent)
    wanted = [f"es-skipping[{EXTRAS}] @ {wheel.as_uri()}", *FOR_THE_PAGES]
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], env=environment)
    return python


def python_for_others() -> str:
    """This Python, or the system's where ``nobody`` can run only that one: a home may be closed to other users."""
    systems = "/usr/bin/python3"
    if os.geteuid() != 0 or another_user(sys.executable) or not another_user(systems, "-c", "import ensurepip"):
        return sys.executable
    return systems


def another_user(python: str | Path, *arguments: str) -> str | None:
    """``nobody`` where root runs this and ``nobody`` can run that Python; otherwise None, this user."""
    if os.geteuid() != 0:
        return None
    command = [python, *(arguments or ("-c", ""))]
    try:
        done = subprocess.run(
            command, user="nobody", group="nogroup", cwd="/", env={}, check=False, stderr=subprocess.DEVNULL
        )
    except (PermissionError, LookupError):
        return None
    return "nobody" if done.returncode == 0 else None


def run_pages(python: Path, folder: Path, names: Sequence[str]) -> int:
    """Run the pages by the installed package; the checkout's own is out of sight. Returns how many failed."""
    sight = folder / "sight"
    for name in ("docs", "tests", "examples"):
        shutil.copytree(ROOT / name, sight / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", sight)
    for name in ("home", "conf", "work"):
        (folder / name).mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{key} {value}\n" for key, value in IN_PAGES.items()), encoding="utf-8"
    )
    (folder / "home").chmod(0o555)
    user = another_user(python)
    if user is not None:
        shutil.chown(folder / "work", user, "nogroup")
    environment = {
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "HOME": str(folder / "home"),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "PYTHONPATH": str(sight),
        "PYTHONDONTWRITEBYTECODE": "1",
        "ES_URL": shared_url(),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    print(f"running {len(names)} pages as {user or 'this user'}, home can only be read", flush=True)
    process = subprocess.Popen(
        [python, "-c", "from tests.cli.pages import main; main()", *names],
        cwd=folder / "work", env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        user=user, group=user and "nogroup", extra_groups=[] if user else None,
        preexec_fn=None if user else obey_permissions,
    )  # fmt: skip
    assert process.stdout is not None
    seen, failed = set(), 0
    for line in process.stdout:
        if not line.startswith("["):
            continue
        name, blocks = json.loads(line)
        errors = [block for block in blocks if block["error"]]
        seen.add(name)
        failed += bool(errors)
        print(f"{'FAILED' if errors else 'passed'}  {name}: {len(blocks)} blocks", flush=True)
        for block in errors:
            print(f"{name}:{block['line']}\n{block['error']}")
    process.wait()
    for name in set(names) - seen:
        print(f"FAILED  {name}: did not run")
    return failed + len(set(names) - seen)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build a release and try it as a stranger would.")
    parser.add_argument("pages", nargs="*", help="default: README, the tutorial and the how-to pages")
    given = parser.parse_args()
    check_the_tag()
    with tempfile.TemporaryDirectory(prefix="es-skipping-release-") as made:
        folder = Path(made)
        python = install(build_twice(folder), folder)
        failed = run_pages(python, folder, given.pages or PAGES)
    print("the release is good" if not failed else f"{failed} pages failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
