"""Breaks the rooms that decide what is skipped, one small change at a time, and counts which changes the tests notice.

    make generated-mutants                                          1,500 of them
    python -m tests.generated_mutants --count 200 --seed 7          others
    python -m tests.generated_mutants --only predicates/text.py     all of one module
    python -m tests.generated_mutants --only clauses/merge.py::_leaf

`tests.mutator` makes the mutants. The tests are those that need no Spark; a map, made once for a state of the code,
tells which lines each of them runs and how long it takes. A mutant is judged by the tests that run its lines, the
quickest first, until one fails, runs for ever, or their time is spent. Each is judged in a fork of this process, which
has everything loaded: a change inside a function is put into the live function, any other takes a new import.

A mutant that no test notices is a defect of the tests, or is named in ``tests/mutations/equivalent.txt`` with the
reason why it is as good as the code. An entry there that is noticed, or that nothing matches, is an error too.
"""

from __future__ import annotations

import argparse
import functools
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

from tests.elasticsearch_node import URL_VARIABLE, shared_url
from tests.mutator import Mutant, mutants_of

ROOT: Final = Path(__file__).resolve().parent.parent
EQUIVALENT: Final = ROOT / "tests" / "mutations" / "equivalent.txt"

_SERVER_ROOM: Final = "es_skipping/stores/elasticsearch/"
MODULES: Final = (
    "es_skipping/clauses/*.py",
    "es_skipping/predicates/*.py",
    *(f"es_skipping/indexes/{name}.py" for name in ("labels", "filters", "minmax", "valuelist", "prefix", "suffix")),
    *(f"es_skipping/indexes/{name}.py" for name in ("gaplist", "bloomfilter", "hybrid", "formatted", "features")),
    *(
        f"es_skipping/indexes/{name}.py"
        for name in ("geobox", "geometrybox", "metricdistance", "toolkit/boxes", "toolkit/sedona")
    ),
    *(
        f"{_SERVER_ROOM}{name}.py"
        for name in ("query", "bools", "shape", "complement", "answers", "blocks", "views", "open_views")
    ),
    *(f"es_skipping/stores/parquet/{name}.py" for name in ("answers", "evaluate", "sets")),
)
"""What decides which objects are skipped."""
BY_A_SERVER: Final = tuple(f"{_SERVER_ROOM}{name}.py" for name in ("answers", "views", "open_views"))
"""Among them what only shows with a real server."""
TEXTS: Final = tuple(f"es_skipping/{name}.py" for name in ("predicates/show", "predicates/reasons", "clauses/text"))
"""Among them what only people read."""
OF_SPARK: Final = {"collected", "feature_words", "MetricDistance.distance", "MetricDistance._sql"}
"""Functions that make Spark's columns: what they are worth shows with a Spark alone."""

_SERVER_TESTS: Final = "tests/stores/elasticsearch/"
TESTS: Final = (
    "tests/clauses",
    "tests/predicates",
    "tests/indexes",
    "tests/stores/test_codec.py",
    *(f"tests/stores/parquet/test_{name}.py" for name in ("contract", "answers", "cells")),
    *(f"{_SERVER_TESTS}test_{name}.py" for name in ("bools", "query", "answers", "blocks", "contract")),
    *(
        f"{_SERVER_TESTS}test_{name}.py"
        for name in ("views", "counts", "expensive", "long_literals", "prints", "documents")
    ),
)
"""Tests of these that ask for a Spark are left out. Those with a server judge the server's room alone."""
_OWN_PROCESSES: Final = ("test_light.py", "test_killed.py")
"""What starts processes of its own, which do not have the change."""
_SLOW: Final = ("test_random_metadata_and_clauses", "test_a_long_list_is_let_be", "test_many_objects")
"""What takes seconds and says what quicker tests say too."""

AT_A_TIME: Final = 2
_EXAMPLES: Final = 40
"""Of each random test, always the same: what is noticed by examples is noticed again."""
_MEMORY: Final = 6 << 30


# --- which mutants --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A mutant of one of the modules."""

    module: str
    mutant: Mutant

    @property
    def module_name(self) -> str:
        return self.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def name(self) -> tuple[str, str, str]:
        return self.module, self.mutant.function, self.mutant.change

    def __str__(self) -> str:
        return f"{self.module}:{self.mutant.lines[0]} {self.mutant.function}: {self.mutant.change}"


def candidates() -> list[Candidate]:
    paths = sorted({path for pattern in MODULES for path in ROOT.glob(pattern)})
    modules = [str(path.relative_to(ROOT)) for path in paths]
    return [
        Candidate(module, mutant)
        for module in modules
        if module not in TEXTS
        for mutant in mutants_of((ROOT / module).read_text(encoding="utf-8"))
        if not {mutant.function, mutant.function.rpartition(".")[2]} & OF_SPARK
    ]


_ENTRY: Final = re.compile(
    r"Where: (?P<module>\S+)(?: (?P<function>\S+))?\nChange: (?P<change>.+)\nWhy: (?P<why>.+)\n?"
)


def equivalent() -> dict[tuple[str, str, str], str]:
    """The mutants that are as good as the code, by name, and why."""
    entries = filter(None, EQUIVALENT.read_text(encoding="utf-8").strip().split("\n\n"))
    found = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{EQUIVALENT} has an entry without the three lines Where:, Change: and Why:\n{entry}")
        name = match["module"], match["function"] or "", match["change"]
        if name in found:
            raise ValueError(f"{EQUIVALENT} has two entries for {name}")
        found[name] = match["why"]
    return found


# --- a child process: one fork that runs tests ----------------------------------------------------------------------


@dataclass
class Child:
    """A fork of this process, with a folder for its files."""

    pid: int
    folder: Path
    said: str = ""

    def result(self, status: int) -> Any:
        """What it wrote; None where it ended before."""
        written = self.folder / "result.json"
        found = json.loads(written.read_text(encoding="utf-8")) if written.exists() else None
        if found is None:
            for name in ("error", "log"):
                if (self.folder / name).exists():
                    self.said += (self.folder / name).read_text(encoding="utf-8", errors="replace")[-4000:]
            current = self.folder / "current"
            running = current.read_text(encoding="utf-8") if current.exists() else "the start"
            number = os.waitstatus_to_exitcode(status)
            if number >= 0:
                raise RuntimeError(f"a fork ended with {number} in {running}: {self.said}")
            word = "ran for ever" if number in (-signal.SIGPROF, -signal.SIGALRM) else f"ended with {number}"
            found = {"ended": f"{word} in {running}", "said": self.said}
        shutil.rmtree(self.folder, ignore_errors=True)
        return found


def fork(work: Callable[[Path], Any]) -> Child:
    """Do something in a fork, which writes what it returns to a file and ends."""
    folder = Path(tempfile.mkdtemp(prefix="es-skipping-mutant-"))
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return Child(pid, folder)
    code = 1
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
        for number, target in ((0, nothing), (1, log), (2, log)):
            os.dup2(target, number)
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        found = work(folder)
        (folder / "written").write_text(json.dumps(found), encoding="utf-8")
        (folder / "written").rename(folder / "result.json")
        code = 0
    except BaseException:
        import traceback

        (folder / "error").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(code)


def in_children(works: Iterable[tuple[Any, Callable[[Path], Any]]]) -> Iterator[tuple[Any, Any]]:
    """Do works in forks, so many at a time; yields what each is about and what it returned, as they end."""
    running: dict[int, tuple[Any, Child]] = {}
    waiting = iter(works)
    try:
        while True:
            while len(running) < AT_A_TIME and (work := next(waiting, None)) is not None:
                child = fork(work[1])
                running[child.pid] = work[0], child
            if not running:
                return
            pid, status = os.wait()
            if pid in running:  # and no child of somebody else's, such as a server's launcher
                about, child = running.pop(pid)
                yield about, child.result(status)
    finally:
        for pid, (_, child) in running.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            shutil.rmtree(child.folder, ignore_errors=True)


class Reports:
    """A plugin that remembers whether a test failed."""

    failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


def run_tests(
    session: pytest.Session, items: Sequence[pytest.Item], seconds: Mapping[str, float], folder: Path
) -> str | None:
    """Run tests until one fails; returns its name. One that takes much longer than it should ends the process."""
    reports = Reports()
    session.config.pluginmanager.register(reports)
    for item, after in zip(items, (*items[1:], None), strict=True):
        (folder / "current").write_text(item.nodeid, encoding="utf-8")
        usual = seconds.get(item.nodeid, 1.0)
        signal.setitimer(signal.ITIMER_PROF, 10 + 10 * usual)  # of computing
        signal.setitimer(signal.ITIMER_REAL, 120 + 60 * usual)  # of waiting
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if reports.failed is not None:
            break
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
    return reports.failed


# --- the map: which test runs which lines, and for how long ---------------------------------------------------------


_CALLS_WITHOUT_A_NEW_LINE: Final = 200
"""In one test; after them a function is no longer looked at, since looking at lines is slow."""


class Tracer:
    """Collects the lines that run of the modules, in all threads."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = {str(ROOT / module): module for module in modules}
        self._lines: dict[CodeType, set[int]] = {}
        self._left: dict[CodeType, int] = {}

    def start(self) -> None:
        self._lines, self._left = {}, {}
        threading.settrace(self)
        sys.settrace(self)

    def stop(self) -> dict[str, list[int]]:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        found: dict[str, set[int]] = {}
        for code, lines in list(self._lines.items()):
            found.setdefault(self._modules[code.co_filename], set()).update(lines)
        return {module: sorted(lines) for module, lines in found.items()}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename not in self._modules:
            return None
        lines = self._lines.setdefault(code, {frame.f_lineno})
        left = self._left.get(code, _CALLS_WITHOUT_A_NEW_LINE)
        if not left:
            return None
        self._left[code] = left - 1

        def local(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            if frame.f_lineno not in lines:
                lines.add(frame.f_lineno)
                self._left[code] = _CALLS_WITHOUT_A_NEW_LINE
            return local

        return local


def traced(session: pytest.Session, items: Sequence[pytest.Item], modules: Iterable[str], folder: Path) -> Any:
    """The lines and seconds of tests, by name, and which of them failed."""
    tracer, reports = Tracer(modules), Reports()
    session.config.pluginmanager.register(reports)
    wrappers = _caches()
    found = {}
    for item, after in zip(items, (*items[1:], None), strict=True):
        (folder / "current").write_text(item.nodeid, encoding="utf-8")
        for wrapper in wrappers:
            wrapper.cache_clear()
        begun = time.process_time(), time.monotonic()
        tracer.start()
        try:
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        finally:
            lines = tracer.stop()
        waits = item.nodeid.startswith(_SERVER_TESTS)
        seconds = time.monotonic() - begun[1] if waits else time.process_time() - begun[0]
        found[item.nodeid] = {"seconds": seconds, "lines": lines}
    session.config.hook.pytest_sessionfinish(session=session, exitstatus=0)
    return {"failed": reports.failed, "tests": found}


def _caches() -> list[Any]:
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, functools._lru_cache_wrapper) and str(found.__module__).startswith("es_skipping")
    ]


def state_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def remembered(path: Path) -> dict[str, Any] | None:
    """The part of the map that a file holds, if the modules that its tests run are as they were."""
    if not path.exists():
        return None
    found = json.loads(path.read_text("utf-8"))
    same = all((ROOT / module).exists() and state_of(ROOT / module) == state for module, state in found["modules"])
    return found["tests"] if same else None


# --- a mutant at work -----------------------------------------------------------------------------------------------


class Live:
    """The functions of the package as they live in this process, to be given other code."""

    def __init__(self) -> None:
        self._functions: dict[tuple[str, int, str], list[FunctionType]] = {}
        for found in gc.get_objects():
            if isinstance(found, FunctionType) and found.__code__.co_filename.startswith(str(ROOT / "es_skipping")):
                self._functions.setdefault(_place(found.__code__), []).append(found)
        self._caches = _caches()

    def put(self, candidate: Candidate) -> bool:
        """Whether the change could be put into the live functions, or into the live constant."""
        module = compile(candidate.mutant.make(), str(ROOT / candidate.module), "exec")
        constant = candidate.mutant.constant
        placed = (
            self._put_functions(candidate, module) if constant is None else _put_constant(candidate, module, constant)
        )
        for wrapper in self._caches:
            wrapper.cache_clear()
        return placed

    def _put_functions(self, candidate: Candidate, module: CodeType) -> bool:
        name, line = candidate.mutant.outermost or ("", 0)
        changed = [code for code in _inner(module) if (code.co_firstlineno, code.co_name) == (line, name)]
        placed = False
        try:
            for code in (inner for outer in changed for inner in (outer, *_inner(outer))):
                for function in self._functions.get(_place(code), ()):
                    function.__code__ = code
                    placed = placed or code in changed
        except ValueError:  # it closes over other variables
            return False
        return placed


def _put_constant(candidate: Candidate, module: CodeType, constant: str) -> bool:
    live = sys.modules[candidate.module_name]
    old = vars(live)[constant]
    made = {"__name__": live.__name__, "__file__": live.__file__}
    exec(module, made)
    holders = [
        holder for name, holder in list(sys.modules.items()) if name.partition(".")[0] in ("es_skipping", "tests")
    ]
    for holder in holders:
        if holder is live or vars(holder).get(constant) is old:
            setattr(holder, constant, made[constant])
    return True


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def _place(code: CodeType) -> tuple[str, int, str]:
    return code.co_filename, code.co_firstlineno, code.co_name


class Imported(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module of the package as its mutant."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        super().__init__(candidate.module_name, str(ROOT / candidate.module))

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.util.spec_from_file_location(self.name, self.path, loader=self) if fullname == self.name else None
        )

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._candidate.mutant.make(), self.path, "exec")


def with_new_imports(
    candidate: Candidate, chosen: Sequence[tuple[str, int]], seconds: Mapping[str, float], folder: Path
) -> str | None:
    """Import everything anew, one module changed, and run the chosen tests; returns which failed."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("es_skipping", "tests") and name != __name__]:
        del sys.modules[name]
    sys.meta_path.insert(0, Imported(candidate))
    signal.setitimer(signal.ITIMER_PROF, 60)

    def loop(session: pytest.Session) -> None:
        found = places(session.items)
        items = [found[place] for place in chosen if place in found]
        leg.failed.append(run_tests(session, items, seconds, folder))

    leg = Leg(loop)
    code = pytest.main([*_OPTIONS, *sorted({function.partition("::")[0] for function, _ in chosen})], plugins=[leg])
    if not leg.failed and code != pytest.ExitCode.INTERRUPTED:
        raise RuntimeError(f"pytest ended with {code}")
    return leg.failed[0] if leg.failed else "the import"


# --- one run of pytest: collects once, then forks -------------------------------------------------------------------

_OPTIONS: Final = (
    *("-q", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("--no-header", "--no-summary"),
)


class Leg:
    """A plugin of pytest that collects the tests of the unit leg, and does something else than to run them all."""

    def __init__(self, loop: Callable[[pytest.Session], Any], without: set[str] | None = None) -> None:
        self._loop = loop
        self._without = {"base", "spark"} | (without or set())
        self.failed: list[str | None] = []
        self.at_import: set[tuple[str, int, str]] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        from hypothesis import Phase, settings

        # The same examples each time, and the first that fails will do.
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("ci"), phases=phases, max_examples=_EXAMPLES)
        settings.load_profile("mutants")

        def called(frame: FrameType, event: str, argument: object) -> None:
            self.at_import.add(_place(frame.f_code))

        sys.settrace(called)
        try:
            return (yield)
        finally:
            sys.settrace(None)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from hypothesis import settings

        for item in items:
            function = getattr(item.obj, "__func__", item.obj)  # type: ignore[attr-defined]
            own = getattr(function, "_hypothesis_internal_use_settings", None)
            if own is not None and own.max_examples > _EXAMPLES:
                function._hypothesis_internal_use_settings = settings(own, max_examples=_EXAMPLES)
        items[:] = [
            item
            for item in items
            if not self._without & set(item.fixturenames)  # type: ignore[attr-defined]
            and item.path.name not in _OWN_PROCESSES
            and not item.name.startswith(_SLOW)
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors while the tests were collected")
        self._loop(session)
        return True


def places(items: Iterable[pytest.Item]) -> dict[tuple[str, int], pytest.Item]:
    """Tests by the function and the number among its cases: names of cases may be made by what is changed."""
    seen: Counter[str] = Counter()
    found = {}
    for item in items:
        function = item.nodeid.partition("[")[0]
        found[function, seen[function]] = item
        seen[function] += 1
    return found


@dataclass
class Judge:
    """Judges mutants by the tests of one session."""

    session: pytest.Session
    leg: Leg
    tests: Mapping[str, Any]
    budget: float
    live: Live = field(default_factory=Live)

    def __post_init__(self) -> None:
        self._seconds = {name: test["seconds"] for name, test in self.tests.items()}
        self._lines = {
            name: {module: set(lines) for module, lines in test["lines"].items()} for name, test in self.tests.items()
        }
        self._items = {item.nodeid: item for item in self.session.items}
        self._places = {item.nodeid: place for place, item in places(self.session.items).items()}

    def covering(self, candidate: Candidate) -> list[str]:
        """The tests that run a mutant's lines, the quickest first, up to the budget."""
        module, mutant = candidate.module, candidate.mutant
        touching = {name: lines[module] for name, lines in self._lines.items() if module in lines}
        if not module.startswith(_SERVER_ROOM):
            touching = {name: lines for name, lines in touching.items() if not name.startswith(_SERVER_TESTS)}
        chosen: list[str] = []
        for first, last in (mutant.lines, mutant.statement):  # a folded constant has no line of its own
            changed = set(range(first, last + 1))
            chosen = chosen or [name for name, lines in touching.items() if lines & changed]
        if mutant.outermost is None:
            chosen = list(touching) or self._of_the_room(module)  # a module of declarations runs at its import alone
        spent, within = 0.0, []
        for name in sorted(chosen, key=lambda name: self._seconds[name]):
            spent += self._seconds[name]
            if spent > self.budget and within:
                break
            within.append(name)
        return within

    def _of_the_room(self, module: str) -> list[str]:
        """The tests that run anything of a module's room."""
        room = module.rpartition("/")[0] + "/"
        return [name for name, lines in self._lines.items() if any(other.startswith(room) for other in lines)]

    def __call__(self, candidate: Candidate, folder: Path) -> dict[str, Any]:
        chosen = self.covering(candidate)
        if not chosen:
            return {"failed": None, "tests": 0}
        name, line = candidate.mutant.outermost or ("", 0)
        only_by_import = not name or (str(ROOT / candidate.module), line, name) in self.leg.at_import
        failed = None
        try:
            placed = self.live.put(candidate)
        except Exception as error:  # the changed module does not load
            return {"failed": f"the import: {error!r}", "tests": len(chosen)}
        if placed:
            failed = run_tests(self.session, [self._items[name] for name in chosen], self._seconds, folder)
            only_by_import = only_by_import and candidate.mutant.constant is None
        elif name:
            only_by_import = True
        if failed is None and only_by_import:
            wanted = [self._places[name] for name in chosen]
            failed = with_new_imports(candidate, wanted, self._seconds, folder)
        return {"failed": failed, "tests": len(chosen)}


def test_map(session: pytest.Session, modules: Sequence[str]) -> Mapping[str, Any]:
    """What each test runs; remembered test module by test module, until it or what it runs is changed."""
    folder = ROOT / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    by_path: dict[Path, list[pytest.Item]] = {}
    for item in session.items:
        by_path.setdefault(item.path, []).append(item)
    files = {path: folder / f"{path.stem}-{state_of(path)}.json" for path in by_path}
    parts = {path: remembered(file) for path, file in files.items()}
    for path, items in by_path.items():
        if any(item.nodeid not in (parts[path] or {}) for item in items):
            parts[path] = None
    missing = [path for path, part in parts.items() if part is None]
    failed = ""
    for path, found in in_children(
        (path, functools.partial(traced, session, by_path[path], modules)) for path in missing
    ):
        if "ended" in found or found["failed"]:
            failed += f"{found.get('said', '')}\n{found.get('failed') or found['ended']} fails on the code as it is\n"
            continue
        parts[path] = found["tests"]
        ran = {module for test in found["tests"].values() for module in test["lines"]}
        states = [(module, state_of(ROOT / module)) for module in sorted(ran)]
        files[path].write_text(json.dumps({"modules": states, "tests": found["tests"]}), encoding="utf-8")
    if failed:
        print(failed, flush=True)
        raise session.Failed
    names = {item.nodeid for item in session.items}
    return {name: test for part in parts.values() for name, test in (part or {}).items() if name in names}


# --- the run --------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the code in small ways and count what the tests notice.")
    parser.add_argument("--count", type=int, default=1500, help="how many mutants (1500)")
    parser.add_argument("--seed", type=int, default=18, help="which (18)")
    parser.add_argument("--only", help="all mutants of a module, or of a function: module.py::function")
    parser.add_argument("--list", action="store_true", help="print them and judge none")
    parser.add_argument("--least", type=float, default=97.0, help="percentage to be noticed before reasons (97)")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests for one mutant, by the map (20)")
    parser.add_argument("--no-server", action="store_true", help="leave out what takes a real Elasticsearch")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no other mutant after this time")
    parser.add_argument("--verbose", action="store_true", help="print what noticed each")
    given = parser.parse_args()

    known = equivalent()
    everything = candidates()
    names = {candidate.name for candidate in everything}
    stale = [name for name in known if name not in names]
    if stale:
        print("\n".join(f"tests/mutations/equivalent.txt names a mutant that there is not: {name}" for name in stale))
        return 1
    if given.only:
        path, _, function = given.only.partition("::")
        chosen = [c for c in everything if c.module.endswith(path) and function in ("", c.mutant.function)]
    else:
        chosen = random.Random(given.seed).sample(everything, min(given.count, len(everything)))
    if given.no_server:
        chosen = [candidate for candidate in chosen if candidate.module not in BY_A_SERVER]
    if given.list:
        print(*chosen, sep="\n")
        return 0

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever stops it stops its forks too
    if not given.no_server:
        os.environ.setdefault(URL_VARIABLE, shared_url())
    verdicts: dict[Candidate, dict[str, Any]] = {}
    begun = time.monotonic()

    def loop(session: pytest.Session) -> None:
        tests = test_map(session, sorted({candidate.module for candidate in everything}))
        print(f"{len(tests)} tests, mapped after {(time.monotonic() - begun) / 60:.1f} min", flush=True)
        judge = Judge(session, leg, tests, given.budget)
        gc.collect()
        gc.freeze()
        works = (
            (candidate, functools.partial(judge, candidate))
            for candidate in chosen
            if time.monotonic() - begun < 60 * given.minutes
        )
        for candidate, found in in_children(works):
            verdicts[candidate] = found
            if "failed" in found and found["failed"] is None:
                reason = known.get(candidate.name)
                print(
                    f"not noticed by {found['tests']} tests: {candidate}" + (f"  [{reason}]" if reason else ""),
                    flush=True,
                )
            elif given.verbose:
                print(f"noticed: {candidate}  by {found.get('failed') or found['ended']}", flush=True)
            if len(verdicts) % 100 == 0:
                print(f"{len(verdicts)} judged, {(time.monotonic() - begun) / 60:.1f} min", flush=True)

    leg = Leg(loop, {"elasticsearch_url"} if given.no_server else set())
    code = pytest.main([*_OPTIONS, *TESTS], plugins=[leg])
    if code or not verdicts:
        return int(code) or 1
    unnoticed = {candidate for candidate, found in verdicts.items() if "failed" in found and found["failed"] is None}
    explained = {candidate for candidate in unnoticed if candidate.name in known}
    share = 100 * (1 - len(unnoticed) / len(verdicts))
    print(
        f"{len(verdicts)} of {len(everything)} mutants, seed {given.seed}: {len(verdicts) - len(unnoticed)} noticed"
        f" ({share:.1f} %), {len(explained)} as good as the code, {len(unnoticed - explained)} unexplained,"
        f" in {(time.monotonic() - begun) / 60:.0f} min"
    )
    wrongly = [candidate for candidate in verdicts if candidate.name in known and candidate not in unnoticed]
    for candidate in wrongly:
        print(f"tests/mutations/equivalent.txt names a mutant that a test notices: {candidate}")
    return 1 if unnoticed - explained or wrongly or share < given.least else 0


if __name__ == "__main__":
    sys.exit(main())
