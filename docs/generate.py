"""Writes the pages of the reference that are made from the code; ``--check`` only tells whether they are current.

python docs/generate.py [--check]
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import es_skipping
from es_skipping.settings import SETTINGS

DOCS = Path(__file__).resolve().parent
GENERATED = "<!-- Made by `make docs` from {source}; changes belong there. -->\n"


def settings_page() -> str:
    """``reference/settings.md``."""
    lines = [
        GENERATED.format(source="es_skipping/settings.py"),
        "# Settings",
        "",
        "Every setting is read from the Spark session and takes effect with the next query: by `spark.conf.set`,",
        "`--conf` of `spark-submit`, or in `spark-defaults.conf`. An unknown key under `spark.es_skipping.` gets a",
        "warning that names the nearest real one.",
        "",
        "Write durations as `500ms`, `2s`, `5m`, `1h`; a bare number is seconds. Write secrets as references,",
        "`env:NAME` or `file:PATH`. Spark hides keys that contain `password` or `token` wherever it shows settings,",
        "and no others.",
        "",
        "| Key | Default | Type | Meaning |",
        "|---|---|---|---|",
    ]
    for setting in SETTINGS.values():
        default = "" if setting.default is None else f"`{setting.default}`"
        lines.append(f"| `{setting.key}` | {default} | {setting.type} | {setting.meaning} |")
    return "\n".join(lines) + "\n"


GROUPS: dict[str, tuple[str, ...]] = {
    "Sessions": ("configure", "enable", "disable", "is_enabled"),
    "Datasets": ("Dataset", "RefreshResult", "read", "list_indexes", "index_files", "declare_function"),
    "Index types": (
        "MinMax",
        "GapList",
        "ValueList",
        "BloomFilter",
        "Hybrid",
        "Prefix",
        "Suffix",
        "Formatted",
        "GeoBox",
        "GeometryBox",
        "MetricDistance",
    ),
    "Reports": ("observe", "last_query", "queries", "explain", "why_not", "advise", "indicators"),
    "Other engines": ("files",),
}
"""The public names in the order a reader meets them; what is in no group follows under Errors or Others."""


LAYOUT: dict[str, tuple[str, ...]] = {
    "Workloads": ("QueryLog", "Query", "Template", "zipf", "diagnose", "Diagnosis"),
    "Which layout": ("design", "Design", "Forecast"),
    "One order of rows": ("SOP", "QueryTree", "Plan", "TreePlan", "Prediction", "Written"),
    "Column groups": (
        "GSOP",
        "GSOPR",
        "GroupPlan",
        "ColumnGroup",
        "write_groups",
        "append_groups",
        "index_groups",
        "WrittenGroups",
    ),
    "Features": ("mine_features", "Feature"),
    "Keeping it": ("status", "Status", "GroupStatus"),
}
"""The names of `es_skipping.layout`, likewise."""

SHARED_BASES = ("LayoutMaker", "RowLayout")
"""Base classes without an entry of their own: the entry of each class derived from them shows what they define."""


def layout_page() -> str:
    """``reference/layout.md``."""
    from es_skipping import layout

    lines = [
        GENERATED.format(source="the docstrings"),
        "# Python API of layouts",
        "",
        "These are the names of `es_skipping.layout`. [Lay data out](../how-to/lay-out-data.md) and",
        "[Keep a table in column groups](../how-to/column-groups.md) show how to use them.",
    ]
    left = tuple(sorted(set(layout.__all__) - {name for names in LAYOUT.values() for name in names}))
    for title, names in {**LAYOUT, "Others": left}.items():
        if names:
            lines += ["", f"## {title}"]
        for name in names:
            lines += _entry(name, getattr(layout, name), level=3)
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """``reference/api.md``."""
    lines = [
        GENERATED.format(source="the docstrings"),
        "# Python API",
        "",
        "These are the names of the package: `import es_skipping as esk`.",
    ]
    left = set(es_skipping.__all__) - {"indexes"} - {name for names in GROUPS.values() for name in names}
    errors = tuple(sorted(name for name in left if _is_error(getattr(es_skipping, name))))
    others = tuple(sorted(left - set(errors)))
    for title, names in {**GROUPS, "Others": others, "Errors": errors}.items():
        present = [name for name in names if name in set(es_skipping.__all__)]
        if not present:
            continue
        lines += ["", f"## {title}"]
        if title == "Errors":
            lines += ["", *_error_table(present)]
            continue
        for name in present:
            lines += _entry(name, getattr(es_skipping, name), level=3)
            if name == "RefreshResult":
                lines += _entry("Health", importlib.import_module("es_skipping.build.results").Health, level=3)
            if name == "files":
                report = importlib.import_module("es_skipping.engines.report")
                lines += _entry("FileList", report.FileList, level=3) + _entry(
                    "FilesReport", report.FilesReport, level=3
                )
    return "\n".join(lines) + "\n"


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _error_table(names: list[str]) -> Iterator[str]:
    yield "| Error | Is a | Raised for |"
    yield "|---|---|---|"
    for name in names:
        error = getattr(es_skipping, name)
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        yield f"| `{name}` | {bases} | {_one_line(error.__doc__)} |"


def _entry(name: str, thing: Any, level: int) -> list[str]:
    lines = ["", f"{'#' * level} `{name}{_signature(thing)}`", "", *_markdown(inspect.getdoc(thing) or "")]
    if not isinstance(thing, type):
        return lines
    for method_name, method in _members(thing).items():
        if method_name.startswith("_") or not _documented(method) or _inherits_its_docstring(thing, method_name):
            continue
        target = method.fget if isinstance(method, property) else getattr(thing, method_name)
        shown = f"{name}.{method_name}"
        if isinstance(method, property):
            lines += ["", f"{'#' * (level + 1)} `{shown}`", "", *_markdown(inspect.getdoc(target) or "")]
        else:
            lines += _entry(shown, target, level + 1)
    return lines


def _members(thing: type) -> dict[str, Any]:
    """What a class defines, after what it has from a base without an entry of its own."""
    shared = (base for base in thing.__bases__ if base.__name__ in SHARED_BASES)
    return {name: member for one in (*shared, thing) for name, member in vars(one).items()}


def _documented(method: Any) -> bool:
    plain = isinstance(method, (property, classmethod, staticmethod)) or inspect.isfunction(method)
    target = method.fget if isinstance(method, property) else method
    return plain and bool(getattr(target, "__doc__", None))


def _inherits_its_docstring(thing: type, name: str) -> bool:
    """Methods that the base class documents are part of how index types are made, not of how they are used."""
    return any(name in vars(base) for base in thing.__mro__[1:-1] if base.__name__ not in SHARED_BASES)


def _signature(thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [one.replace(annotation=_unquoted(one.annotation)) for one in signature.parameters.values()]
    text = str(signature.replace(parameters=parameters, return_annotation=_unquoted(signature.return_annotation)))
    if isinstance(thing, type) and dataclasses.is_dataclass(thing):
        text = text.split(" -> ")[0]
    text = re.sub(r"<factory>", "...", text)
    return re.sub(r"\(self(, )?", "(", text)


class _Annotation(str):
    """Printed without the quotes of a text, which those of defaults have to keep."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _unquoted(annotation: Any) -> Any:
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


SECTION = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)


def _markdown(docstring: str) -> Iterator[str]:
    """A numpydoc docstring as Markdown."""
    parts = SECTION.split(docstring)
    yield _inline(parts[0].strip())
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield ""
        yield f"**{title}**"
        yield ""
        render: Callable[[str], Iterator[str]] = _code if title == "Examples" else _definitions
        yield from render(body.strip("\n"))


def _code(body: str) -> Iterator[str]:
    """Examples: prompts and what they show as code, what is between them as text."""
    for block in re.split(r"\n\s*\n", body):
        if block.lstrip().startswith(">>>"):
            yield "```pycon"
            yield re.sub(r"\s*# doctest: .*", "", block)
            yield "```"
        else:
            yield _inline(block)
        yield ""


def _definitions(body: str) -> Iterator[str]:
    """``name\\n    what it is`` as a list; text without that shape as it is."""
    if not re.search(r"^\S.*\n[ ]{4}\S", body, re.MULTILINE):
        yield from (
            f"- `{line.strip()}`" if re.fullmatch(r"\w+", line.strip()) else _inline(line) for line in body.splitlines()
        )
        return
    for name, text in re.findall(r"^(\S[^\n]*)\n((?:[ ]{4}[^\n]*\n?|\n)*)", body + "\n", re.MULTILINE):
        yield f"- `{name}`: {_one_line(text)}" if text.strip() else f"- `{name}`"


def _one_line(text: str | None) -> str:
    return _inline(" ".join((text or "").split()))


def _inline(text: str) -> str:
    """Restructured text's two kinds of quotes as Markdown's one; a literal block as code."""
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return re.sub(r"::\n\n((?: {4}.*\n?|\n)+)", lambda m: ":\n\n```\n" + inspect.cleandoc(m[1]) + "\n```\n", text)


def semantics_page() -> str:
    """``reference/what-is-skipped.md``."""
    sys.path.insert(0, str(DOCS.parent))  # the table is the tests'
    from es_skipping.predicates.reasons import REASONS
    from tests.soundness.semantics import BEYOND, CASES

    lines = [
        GENERATED.format(source="tests/soundness/semantics.py"),
        "# What is skipped, and what never is",
        "",
        "Each table has three objects, A, B and C, and says which of them a query reads. A test plans every line on",
        "both stores: with `MinMax(c)`, with `ValueList(c)`, and with all other index types together, which may lose",
        "no object. Where `MinMax(c)` reads other objects, the line says so. Values mean what they mean in Spark.",
        "The indexes are built in UTC and ANSI mode; a table names the settings of a query that differ.",
    ]
    for case in CASES:
        held = "; ".join(
            f"{name}: {_cell(' and '.join(dict.fromkeys(pair)))}"
            for name, pair in zip("ABC", case.objects, strict=True)
        )
        settings = ", ".join(f"`{key}={value}`" for key, value in case.settings.items())
        lines += [
            "",
            f"## {case.topic}",
            "",
            f"`c` is `{case.sql_type}`. {held}.{settings and f' The query runs with {settings}.'}",
            "",
            "| Filter | reads |",
            "|---|---|",
        ]
        for predicate, read in case.reads.items():
            more = f" (`MinMax`: {case.minmax[predicate].upper() or 'none'})" if predicate in case.minmax else ""
            lines.append(f"| {_cell(predicate)} | {read.upper() or 'none'}{more} |")
    lines += [
        "",
        "## What rules nothing out",
        "",
        "Some parts of a filter become no clause. `esk.explain` gives the reason in these words. A test explains every",
        "example, with an index on every column.",
        "",
        "| Explain says | For example | Because |",
        "|---|---|---|",
    ]
    for reason in REASONS:
        examples = ", ".join(_cell(filter) for filter, _ in reason.examples)
        lines.append(f"| {re.sub('{[a-z]+}', '…', reason.text)} | {examples} | {reason.because} |")
    lines += ["", "## What is read whatever the filter", "", "| | For example | Because |", "|---|---|---|"]
    lines += [f"| {what} | {example} | {why} |" for what, example, why in BEYOND]
    return "\n".join(lines) + "\n"


def missed_skips_page() -> str:
    """``reference/missed-skips.md``."""
    sys.path.insert(0, str(DOCS.parent))  # the numbers are the tests'
    from tests.world.figures import Figures
    from tests.world.reasons import REMEDIES

    figures = Figures.read()
    plain = [one for one in figures.judged if one["evaluator"] == "plain"]
    skippable, skipped, missed, cases = (
        sum(one[name] for one in plain) for name in ("skippable", "skipped", "missed", "cases")
    )
    lines = [
        GENERATED.format(source="docs/reference/missed-skips.json, which `python -m tests.world --save` writes"),
        "# Skips that are missed",
        "",
        "Tests try predicates of up to two leaves over every object of at most three rows, on small domains of values.",
        "Spark says which rows satisfy a predicate. A skip is *missed* if the object's metadata rules out every row",
        "that satisfies the filter, and the query still reads the object. A missed skip costs time, never a row.",
        "",
        f"The tests judged {cases:,} cases. In {skippable:,} cases no row of the object satisfies the filter:",
        f"{skipped:,} are skipped, and {missed:,} are missed for the reasons below. In the others the metadata does",
        "not rule such a row out.",
        "",
        "Each reason has an example: an index type, a filter and the rows of the object that it reads.",
        "",
        "| Reason | Missed cases by index type | For example | To skip these |",
        "|---|---|---|---|",
    ]
    for reason, remedy in REMEDIES.items():
        of_reason = sorted((one for one in figures.missed if one.reason == reason), key=lambda one: -one.cases)
        if not of_reason:
            continue
        counts = ", ".join(f"{one.indexes} {one.cases:,}" for one in of_reason)
        shown = min(of_reason, key=lambda one: len(one.filter))
        rows = ", ".join(_cell(" and ".join(row)) for row in shown.rows) or "none"
        lines.append(f"| {reason} | {counts} | {shown.indexes}: {_cell(shown.filter)}, rows {rows} | {remedy} |")
    lines += [
        "",
        "[`missed-skips.json`](missed-skips.json) has an example for each index type and reason.",
    ]
    return "\n".join(lines) + "\n"


def table_one_page() -> str:
    """``reference/indexes/table-one.md``."""
    sys.path.insert(0, str(DOCS.parent))  # the table is the tests'
    from tests.spark.table_one import OBJECTS, ROWS

    lines = [
        GENERATED.format(source="tests/spark/table_one.py"),
        "# Table I",
        "",
        "The index types of Table I of *Extensible Data Skipping* (Ta-Shma, Khazma, Lushi, Feder) and the Hybrid index",
        f"of its section IV. A test builds them over {OBJECTS} objects and runs every filter through Spark, on both",
        "stores. *Objects read* counts the objects that Spark opened, by its own metric. *Of elements* is an index",
        "of the same type over the elements of an array; types of two columns have none. *Lines of code* counts the",
        "index type's own file without blank lines, comments, docstrings and imports; shared code is left out.",
        "",
        (
            f"| Table I | Keeps for each object | For example | Filter | Objects read of {OBJECTS} "
            "| Of elements | Filter | Objects read | Lines of code |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        index = row.plain.index
        code = _lines_of_code(inspect.getsource(sys.modules[type(index).__module__]))
        examples = [*_example(row.plain), *_example(row.elements)]
        cells = [f"[{row.name}]({index.type.lower()}.md)", row.remembers, *examples, f"{code}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _example(one: Any) -> list[str]:
    return ["-"] * 3 if one is None else [_cell(_index(one.index)), _cell(one.filter), f"{one.reads}"]


def _index(index: Any) -> str:
    """An index as people write it: ``Prefix(db_name, length=8)``, without parameters at their defaults."""
    known = inspect.signature(type(index)).parameters
    given = [
        f"{name}={value if str(value).startswith('[') else repr(value)}"  # a point is kept as text
        for name, value in index.parameters.items()
        if name not in known or known[name].default != value
    ]
    return f"{index.type}({', '.join([*map(str, index.columns), *given])})"


def _lines_of_code(source: str) -> int:
    """Without blank lines, comments, docstrings and imports."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, source.splitlines()), start=1)
    return sum(1 for at, line in lines if line and not line.startswith("#") and at not in left_out)


def _cell(sql: str) -> str:
    return "`" + sql.replace("|", "\\|") + "`"


def how_a_row_is_not_lost_page() -> str:
    """``explanation/how-a-row-is-not-lost.md``."""
    sys.path.insert(0, str(DOCS.parent))  # a table is the tests'
    from docs.how_a_row_is_not_lost import page

    return page()


PAGES: dict[str, Callable[[], str]] = {
    "explanation/how-a-row-is-not-lost.md": how_a_row_is_not_lost_page,
    "reference/settings.md": settings_page,
    "reference/api.md": api_page,
    "reference/layout.md": layout_page,
    "reference/what-is-skipped.md": semantics_page,
    "reference/missed-skips.md": missed_skips_page,
    "reference/indexes/table-one.md": table_one_page,
}


def stale() -> list[str]:
    """The pages that are not as the code would make them now."""
    return [
        name
        for name, make in PAGES.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != make()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the parts of the docs that come from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is not current")
    given = parser.parse_args()
    outdated = stale()
    if given.check:
        for name in outdated:
            print(f"docs/{name} is not current: run `make docs`", file=sys.stderr)
        return 1 if outdated else 0
    for name in outdated:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
