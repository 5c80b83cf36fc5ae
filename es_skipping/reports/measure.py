"""Measures a workload's skipping as the paper does: selectivity, layout factor, metadata factor, scanning factor.

Let D be a scan's rows, D_r the rows that satisfy its filter, O_r the objects that hold such a row, and O_s the objects
that Spark opens. From *Extensible Data Skipping*, section on indicators of skipping effectiveness:

    selectivity      sigma  = rows(D_r) / rows(D)
    layout factor    lambda = rows(D_r) / rows(O_r)      how well the relevant rows lie together
    metadata factor  mu     = rows(O_r) / rows(O_s)      how near the metadata comes to the best for that layout
    scanning factor  psi    = rows(O_s) / rows(D)  =  sigma / (lambda * mu)

A query's indicators come from the sums over its scans. A workload's indicators are geometric means over its queries.
The equation holds for both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from es_skipping.errors import EsSkippingError
from es_skipping.reports.driver import Driver
from es_skipping.reports.render import Cell, Rendered, Table, one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Indicators", "ScanIndicators", "indicators"]


_COUNTS: Final = (
    "rows",
    "rows_relevant",
    "rows_of_relevant_objects",
    "rows_scanned",
    "objects",
    "objects_relevant",
    "objects_opened",
)


@dataclass(frozen=True, slots=True)
class ScanIndicators:
    """One scan of one query, or the sum of all its scans.

    Parameters
    ----------
    query
        The query's text, or its position in the workload if it was given as a DataFrame.
    filter
        The condition directly above the scan, as `es_skipping.explain` writes it.
    rows, rows_relevant
        Number of rows of the scan, and of those that satisfy the filter.
    rows_of_relevant_objects, rows_scanned
        Number of rows in the objects that hold a relevant row, and in the opened objects.
    objects, objects_relevant, objects_opened
        Number of objects, of those with a relevant row, and of the opened ones.
    number
        The query's position in the workload, from 1.

    Examples
    --------
    >>> scan = ScanIndicators("q", "x = 5", 1000, 10, 100, 200, objects=10, objects_relevant=1, objects_opened=2)
    >>> scan.selectivity, scan.layout_factor, scan.metadata_factor, scan.scanning_factor
    (0.01, 0.1, 0.5, 0.2)
    """

    query: str
    filter: str
    rows: int
    rows_relevant: int
    rows_of_relevant_objects: int
    rows_scanned: int
    objects: int
    objects_relevant: int
    objects_opened: int
    number: int = 0

    @property
    def selectivity(self) -> float | None:
        """The share of the rows that satisfy the filter."""
        return _ratio(self.rows_relevant, self.rows)

    @property
    def layout_factor(self) -> float | None:
        """The share of relevant rows in the objects that hold one; None if no row is relevant."""
        return _ratio(self.rows_relevant, self.rows_of_relevant_objects)

    @property
    def metadata_factor(self) -> float | None:
        """The rows of relevant objects as a share of the rows of opened objects; None if none is opened."""
        return _ratio(self.rows_of_relevant_objects, self.rows_scanned)

    @property
    def scanning_factor(self) -> float | None:
        """The share of the rows that lie in opened objects."""
        return _ratio(self.rows_scanned, self.rows)


class Indicators(Rendered):
    """A workload's indicators: by scan, by query, and as geometric means over the queries.

    Attributes
    ----------
    scans : tuple of ScanIndicators
        Every file scan, with the filter directly above it, if any.
    """

    def __init__(self, scans: tuple[ScanIndicators, ...]) -> None:
        self.scans = scans

    @property
    def queries(self) -> tuple[ScanIndicators, ...]:
        """For each query that scans files, the sum of its scans."""
        of_query: dict[int, list[ScanIndicators]] = {}
        for scan in self.scans:
            of_query.setdefault(scan.number, []).append(scan)
        return tuple(map(_added_up, of_query.values()))

    @property
    def selectivity(self) -> float | None:
        """Geometric mean over the queries with relevant rows; without relevant rows a query has no factors."""
        return self._mean("selectivity")

    @property
    def layout_factor(self) -> float | None:
        """Geometric mean, likewise."""
        return self._mean("layout_factor")

    @property
    def metadata_factor(self) -> float | None:
        """Geometric mean, likewise."""
        return self._mean("metadata_factor")

    @property
    def scanning_factor(self) -> float | None:
        """Geometric mean, likewise."""
        return self._mean("scanning_factor")

    def _mean(self, name: str) -> float | None:
        found = [getattr(query, name) for query in self.queries if query.rows_relevant]
        return math.exp(math.fsum(map(math.log, found)) / len(found)) if found else None

    def __repr__(self) -> str:
        return f"Indicators({len(self.queries)} queries, scanning factor {_shown(self.scanning_factor)})"

    def parts(self) -> Iterator[str | Table]:
        header = ("query", "filter", "selectivity", "layout", "metadata", "scanning", "objects", "relevant", "opened")
        rows = [
            [Cell(one.query), Cell(one.filter), *_factors(one), *_objects(one)]
            for query in self.queries
            for one in (*self._several(query), query)
        ] or [[Cell("no scan of files")] + [Cell("")] * 8]
        means = [Cell("geometric mean"), Cell(""), *_factors(self), Cell(""), Cell(""), Cell("")]
        yield Table(header, [*rows, means])
        idle = sum(not query.rows_relevant for query in self.queries)
        if idle:
            yield f"Queries without a relevant row, left out of the means: {idle}."

    def _several(self, query: ScanIndicators) -> list[ScanIndicators]:
        """A query's scans, if it has more than one."""
        scans = [scan for scan in self.scans if scan.number == query.number]
        return scans if len(scans) > 1 else []


def _added_up(scans: list[ScanIndicators]) -> ScanIndicators:
    if len(scans) == 1:
        return scans[0]
    sums = {name: sum(getattr(scan, name) for scan in scans) for name in _COUNTS}
    return replace(scans[0], filter=f"all {len(scans)} scans", **sums)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _factors(of: ScanIndicators | Indicators) -> list[Cell]:
    values = (of.selectivity, of.layout_factor, of.metadata_factor, of.scanning_factor)
    return [Cell(_shown(value), number=True) for value in values]


def _objects(scan: ScanIndicators) -> list[Cell]:
    return [Cell(f"{n:,}", number=True) for n in (scan.objects, scan.objects_relevant, scan.objects_opened)]


def indicators(spark: SparkSession, queries: str | DataFrame | Iterable[str | DataFrame]) -> Indicators:
    """Measure how well the metadata and the data's layout serve a workload.

    This reads each scan's data twice: once to count all rows of each object, once to count the relevant rows. Use it
    in benchmarks, and to find out why a workload skips little. Scans inside subqueries are left out. Skipping is on
    during the measurement, even if it is off in the session.

    Parameters
    ----------
    spark
        A classic session.
    queries
        SQL texts or DataFrames, one or several.

    Raises
    ------
    EsSkippingError
        The session is a Spark Connect session, which does not reveal plans.

    Examples
    --------
    >>> print(esk.indicators(spark, ["SELECT * FROM events WHERE city = 'Ulm'"]))           # doctest: +SKIP
    query            filter        selectivity  layout  metadata  scanning  objects  relevant  opened
    ---------------  ------------  -----------  ------  --------  --------  -------  --------  ------
    SELECT * FROM …  city = 'Ulm'       0.0012    0.11         1     0.011    1,000        11      11
    geometric mean                      0.0012    0.11         1     0.011
    """
    from es_skipping.spark.session import disable, enable, is_enabled

    if not hasattr(spark, "_jsparkSession"):
        raise EsSkippingError("indicators need a classic session: Spark Connect does not reveal plans")
    one = isinstance(queries, str) or hasattr(queries, "sparkSession")
    given = cast("Iterable[str | DataFrame]", [queries] if one else queries)
    was_on = is_enabled(spark)
    enable(spark)
    try:
        found = []
        for number, query in enumerate(given, 1):
            text = one_line(query, 60) if isinstance(query, str) else f"query {number}"
            df = spark.sql(query) if isinstance(query, str) else query
            found += [_measured(spark, number, text, scan) for scan in _scans(df)]
        return Indicators(tuple(found))
    finally:
        if not was_on:
            disable(spark)


_CALLS: Final = ("BatchEvalPython", "ArrowEvalPython")
"""The nodes of Spark's plans that call functions of Python."""


@dataclass(frozen=True, slots=True)
class _Scan:
    relation: Any
    filtered: Any
    filter: str


def _scans(df: DataFrame) -> Iterator[_Scan]:
    """The optimized plan's file scans, each with the filters directly above it."""
    stack = [df._jdf.queryExecution().optimizedPlan()]
    while stack:
        node = stack.pop()
        chain = _down(node)
        if _is_file_relation(chain[-1]):
            filters = [one for one in chain if _kind(one) == "Filter"]
            text = " AND ".join(str(one.condition().sql()) for one in filters)
            yield _Scan(chain[-1], filters[0] if filters else node, one_line(text, 60))
            continue
        children = node.children()
        stack.extend(children.apply(at) for at in reversed(range(children.size())))


def _down(node: Any) -> list[Any]:
    """A filter and what lies below it, up to the first node that neither filters nor calls functions of Python.

    Spark calls them in nodes of their own, below the filter that asks for their values.
    """
    chain = [node]
    while _kind(chain[-1]) in ("Filter", *_CALLS) or (_kind(chain[-1]) == "Project" and _kind(chain[-2:][0]) in _CALLS):
        chain.append(chain[-1].child())
    return chain


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _is_file_relation(node: Any) -> bool:
    return _kind(node) == "LogicalRelation" and _kind(node.relation()) == "HadoopFsRelation"


def _filter_text(spark: SparkSession, scan: _Scan) -> str:
    """The scan's filter as `explain` writes it; conditions on partitions only, as Spark writes them."""
    from es_skipping.lookup.verdict import read_filters
    from es_skipping.predicates.show import show
    from es_skipping.spark.services import declarations_of

    if not scan.filter:
        return ""
    for planned in Driver(spark).planned_scans(_frame(spark, scan.filtered)):
        filters = [trees for trees in planned.request.filters if trees]
        if filters:
            declared = declarations_of(spark)
            return one_line(" | ".join(show(read_filters(trees, declared)) for trees in filters), 60)
    return scan.filter


def _measured(spark: SparkSession, number: int, query: str, scan: _Scan) -> ScanIndicators:
    total = _rows_by_object(spark, scan.relation)
    relevant = _rows_by_object(spark, scan.filtered)
    opened = _opened(spark, scan.filtered)
    return ScanIndicators(
        query,
        _filter_text(spark, scan),
        rows=sum(total.values()),
        rows_relevant=sum(relevant.values()),
        rows_of_relevant_objects=sum(total[path] for path in relevant),
        rows_scanned=sum(total.get(path, 0) for path in opened),
        objects=len(total.keys() | opened),
        objects_relevant=len(relevant),
        objects_opened=len(opened),
        number=number,
    )


def _frame(spark: SparkSession, plan: Any) -> DataFrame:
    from pyspark.sql import DataFrame as Frame

    jvm: Any = spark._jvm
    datasets = getattr(getattr(jvm.org.apache.spark.sql.classic, "Dataset$"), "MODULE$")
    return Frame(datasets.ofRows(spark._jsparkSession, plan), spark)


def _rows_by_object(spark: SparkSession, plan: Any) -> dict[str, int]:
    frame = _frame(spark, plan)
    path = frame.metadataColumn("_metadata")["file_path"].alias("path")
    return {_one_form(row.path): row["count"] for row in frame.select(path).groupBy("path").count().collect()}


def _one_form(path: str) -> str:
    """Unify the two ways in which Hadoop writes an empty authority."""
    return path.replace("file:///", "file:/", 1)


def _opened(spark: SparkSession, plan: Any) -> set[str]:
    """The objects that remain for Spark, as its scan lists them."""
    stack = [_frame(spark, plan)._jdf.queryExecution().executedPlan()]
    found: set[str] = set()
    while stack:
        node = stack.pop()
        if _kind(node) == "FileSourceScanExec":
            for partition in node.inputRDDs().head().partitions():
                found |= {_one_form(str(file.urlEncodedPath())) for file in partition.files()}
        children = node.children()
        stack.extend(children.apply(at) for at in range(children.size()))
    return found
