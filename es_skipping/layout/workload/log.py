"""`QueryLog`: the filters of a workload, from wherever they are known."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_skipping.errors import DatasetError
from es_skipping.layout.workload.diagnosis import Diagnosis, diagnose
from es_skipping.layout.workload.filters import is_statement, of_residuals, predicates_of_filters, queries_of_statement
from es_skipping.layout.workload.queries import Query
from es_skipping.layout.workload.templates import Template
from es_skipping.predicates.tree import NEVER, Predicate
from es_skipping.stores.base import is_under

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["QueryLog"]


class QueryLog(Sequence[Query]):
    """A workload: the filters of queries, oldest first.

    Parameters
    ----------
    queries
        `Query` objects, or bare predicates. Those that no row can satisfy are left out.

    Examples
    --------
    >>> from es_skipping.predicates.tree import Column, Comparison, Literal
    >>> from es_skipping.predicates.types import DataType
    >>> x = Column(("x",), DataType("int"))
    >>> log = QueryLog([Comparison(">", x, Literal(3, x.type))])
    >>> print(log[0])
    x > 3
    """

    def __init__(self, queries: Iterable[Query | Predicate]) -> None:
        made = (query if isinstance(query, Query) else Query(query) for query in queries)
        self._queries = [query for query in made if query.predicate != NEVER]

    @classmethod
    def from_filters(cls, df: DataFrame, filters: Iterable[str]) -> QueryLog:
        """Of conditions as they stand after WHERE.

        Parameters
        ----------
        df
            Reads the dataset (of a classic session); it resolves the names.
        filters
            SQL text.

        Raises
        ------
        DatasetError
            Spark cannot resolve one.
        """
        texts = [text.strip() for text in filters]
        return cls(Query(predicate, text) for predicate, text in zip(predicates_of_filters(df, texts), texts))

    @classmethod
    def from_sql(cls, df: DataFrame, statements: Iterable[str]) -> QueryLog:
        """Of whole queries, or of conditions, or both mixed.

        A query counts with the filter of each of its scans of the dataset; its tables and views are those of the
        DataFrame's session. It is planned and not run.

        Parameters
        ----------
        df
            Reads the dataset (of a classic session).
        statements
            SQL text; what begins with SELECT, WITH or FROM is a query.

        Raises
        ------
        DatasetError
            Spark cannot plan one.
        """
        texts = [text.strip() for text in statements if text.strip()]
        conditions = [text for text in texts if not is_statement(text)]
        predicates = predicates_of_filters(df, conditions)
        by_text = {text: Query(predicate, text) for text, predicate in zip(conditions, predicates)}
        roots = _roots(df)
        queries: list[Query] = []
        for text in texts:
            queries += [by_text[text]] if text in by_text else queries_of_statement(df.sparkSession, text, roots)
        return cls(queries)

    @classmethod
    def from_file(cls, df: DataFrame, path: str | Path) -> QueryLog:
        """Of a text file: statements or conditions, each ended by ``;`` at the end of a line or, in a file without
        any, each on a line of its own. Lines that begin with ``--`` are comments."""
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_sql(df, split_statements(text))

    @classmethod
    def from_query_log(cls, df: DataFrame, *, since: datetime | None = None) -> QueryLog:
        """Of the queries on the dataset that sessions logged (``spark.es_skipping.queryLog.enabled``, which takes an
        Elasticsearch store); the dataset need not be indexed for that.

        Parameters
        ----------
        df
            Reads the dataset (of a classic session); the log is read from its session's store.
        since
            Only what was logged from then on; one without a time zone is local.

        Raises
        ------
        DatasetError
            Nothing was logged of the dataset.
        StoreError
            The store cannot be read.
        """
        from es_skipping.spark.services import store_of

        roots = [root.rstrip("/") for root in _roots(df)]
        store = store_of(df.sparkSession)
        queries = []
        for entry in store.logged_queries(since=int(since.timestamp() * 1000) if since else 0):
            if entry.trees and any(is_under(root.rstrip("/"), roots) for root in entry.roots):
                predicate = of_residuals(entry.trees)
                queries += [Query(predicate, entry.filter)] if predicate is not None else []
        if not queries:
            raise DatasetError(
                f"no query on {', '.join(roots)} is in the query log of {store.url}: set "
                "spark.es_skipping.queryLog.enabled in the sessions that query it, with a store on Elasticsearch"
            )
        return cls(queries)

    @classmethod
    def from_templates(cls, df: DataFrame, templates: Sequence[Template], count: int, *, seed: int = 0) -> QueryLog:
        """Of templates whose parameters are drawn: the same queries for the same seed.

        Parameters
        ----------
        count
            How many queries to draw.
        """
        dice = random.Random(seed)  # noqa: S311 - nothing secret
        weights = [template.weight for template in templates]
        return cls.from_filters(df, [dice.choices(templates, weights)[0].instance(dice) for _ in range(count)])

    def split(self, share: float = 0.2) -> tuple[QueryLog, QueryLog]:
        """The older queries, and the newest as a part to test on.

        Parameters
        ----------
        share
            Of the queries, that go to the second part; each part has one at least where there are two.
        """
        if not 0 < share < 1:
            raise ValueError(f"share is {share}; give a number between 0 and 1")
        held = min(max(1, round(share * len(self))), max(len(self) - 1, 0))
        cut = len(self) - held
        return QueryLog(self._queries[:cut]), QueryLog(self._queries[cut:])

    def diagnose(self) -> Diagnosis:
        """Whether the workload repeats itself enough for a layout to pay."""
        return diagnose(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __getitem__(self, at: Any) -> Any:
        return QueryLog(self._queries[at]) if isinstance(at, slice) else self._queries[at]

    def __iter__(self) -> Iterator[Query]:
        return iter(self._queries)

    def __repr__(self) -> str:
        return f"QueryLog({len(self)} queries)"


def split_statements(text: str) -> list[str]:
    """The statements of a file.

    Examples
    --------
    >>> split_statements("-- two\\nx > 1\\ny = 2")
    ['x > 1', 'y = 2']
    >>> split_statements("SELECT *\\nFROM t;\\nx > 1;")
    ['SELECT *\\nFROM t', 'x > 1']
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    whole = "\n".join(lines)
    parts = re.split(r";[ \t]*(?:\n|$)", whole) if re.search(r";[ \t]*(?:\n|$)", whole) else lines
    return [part.strip() for part in parts if part.strip()]


def _roots(df: DataFrame) -> list[str]:
    from es_skipping.spark.bridge import relation_facts

    return [str(root) for root in relation_facts(df)["roots"]]
