"""`QueryLog`: the filters of a workload, from several sources."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_skipping.build.filter_texts import predicates_of_filters
from es_skipping.errors import DatasetError
from es_skipping.layout.workload.diagnosis import Diagnosis, diagnose
from es_skipping.layout.workload.filters import is_statement, queries_of_statement
from es_skipping.layout.workload.templates import Template
from es_skipping.predicates.tree import NEVER, Predicate
from es_skipping.workload.logged import logged_queries
from es_skipping.workload.queries import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["QueryLog"]


class QueryLog(Sequence[Query]):
    """A workload: the filters of queries, oldest first.

    Parameters
    ----------
    queries
        `Query` objects, or bare predicates. Predicates that no row can satisfy are left out.

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
        """Make a log from conditions, written as after WHERE.

        Parameters
        ----------
        df
            A DataFrame of a classic session that reads the dataset; it resolves the names.
        filters
            SQL texts.

        Raises
        ------
        DatasetError
            Spark cannot resolve a condition.
        """
        texts = [text.strip() for text in filters]
        return cls(Query(predicate, text) for predicate, text in zip(predicates_of_filters(df, texts), texts))

    @classmethod
    def from_sql(cls, df: DataFrame, statements: Iterable[str]) -> QueryLog:
        """Make a log from whole queries, conditions, or both.

        A query contributes the filter of each of its scans of the dataset. It uses the tables and views of the
        DataFrame's session, and is planned but not run.

        Parameters
        ----------
        df
            A DataFrame of a classic session that reads the dataset.
        statements
            SQL texts; a text that begins with SELECT, WITH or FROM is a query.

        Raises
        ------
        DatasetError
            Spark cannot plan a query.
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
        """Make a log from a text file of statements or conditions, each ended by ``;`` at the end of a line. In a file
        without ``;`` each has its own line. Lines that begin with ``--`` are comments."""
        text = Path(path).read_text(encoding="utf-8")
        return cls.from_sql(df, split_statements(text))

    @classmethod
    def from_query_log(cls, df: DataFrame, *, since: datetime | None = None) -> QueryLog:
        """Make a log from the dataset's queries in the query log (``spark.es_skipping.queryLog.enabled``). The dataset
        need not be indexed.

        Parameters
        ----------
        df
            A DataFrame of a classic session that reads the dataset; the log comes from its session's store.
        since
            Only queries logged from then on; a time without a zone is local.

        Raises
        ------
        DatasetError
            The log has no query on the dataset.
        StoreError
            The store cannot be read.
        """
        from es_skipping.spark.services import store_of

        store, roots = store_of(df.sparkSession), _roots(df)
        queries = logged_queries(store, roots, since=int(since.timestamp() * 1000) if since else 0)
        if not queries:
            raise DatasetError(
                f"the query log of {store.url} has no query on {', '.join(roots)}: set "
                "spark.es_skipping.queryLog.enabled in the sessions that query it"
            )
        return cls(queries)

    @classmethod
    def from_templates(cls, df: DataFrame, templates: Sequence[Template], count: int, *, seed: int = 0) -> QueryLog:
        """Make a log from templates with random parameters: the same queries for the same seed.

        Parameters
        ----------
        count
            Number of queries to draw.
        """
        dice = random.Random(seed)  # noqa: S311 - not a secret
        weights = [template.weight for template in templates]
        return cls.from_filters(df, [dice.choices(templates, weights)[0].instance(dice) for _ in range(count)])

    def split(self, share: float = 0.2) -> tuple[QueryLog, QueryLog]:
        """Split the log into the older queries, and the newest ones for a test.

        Parameters
        ----------
        share
            The share of the queries in the second part; with two or more queries, each part has at least one.
        """
        if not 0 < share < 1:
            raise ValueError(f"share is {share}, but must be a number between 0 and 1")
        held = min(max(1, round(share * len(self))), max(len(self) - 1, 0))
        cut = len(self) - held
        return QueryLog(self._queries[:cut]), QueryLog(self._queries[cut:])

    def diagnose(self) -> Diagnosis:
        """Diagnose whether the workload repeats itself enough for a layout to pay."""
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
    """Split a file into statements.

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
    from es_skipping.spark.relations import relation_facts

    return [str(root) for root in relation_facts(df)["roots"]]
