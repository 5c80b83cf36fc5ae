"""What a server has refused, and how queries change so that it answers."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final, TypeVar

from elasticsearch import BadRequestError

from es_skipping.stores.elasticsearch.query import LEAF_BUDGET

__all__ = ["EXPENSIVE", "Limits"]

_T = TypeVar("_T")
_log = logging.getLogger("es_skipping.elasticsearch")
EXPENSIVE: Final = "search.allow_expensive_queries"
"""The server's setting; its name is in the refusal."""
_TOO_MANY: Final = re.compile(r"maxClauseCount is set to (\d+)")
_REFUSED_SECONDS: Final = 300.0
"""After a refusal, no expensive query is sent for this long."""


class Limits:
    """The limits of one server's queries, as far as its refusals have told them.

    Parameters
    ----------
    url
        Of the server, for the log.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._no_expensive_before = 0.0
        self.leaves = LEAF_BUDGET

    @property
    def expensive(self) -> bool:
        """Whether queries may be expensive, as Elasticsearch calls them."""
        return time.monotonic() >= self._no_expensive_before

    def adapted(self, ask: Callable[[bool], _T]) -> _T:
        """The answer, asked again where the server refuses a query and tells how to change it.

        Parameters
        ----------
        ask
            Is told whether queries may be expensive, and looks at `leaves`.
        """
        while True:
            expensive = self.expensive
            try:
                return ask(expensive)
            except BadRequestError as error:
                if not self._learned(str(error.body), expensive):
                    raise

    def _learned(self, refusal: str, expensive: bool) -> bool:
        """Whether a refusal tells how to change the query so that this server answers."""
        if expensive and EXPENSIVE in refusal:
            self._no_expensive_before = time.monotonic() + _REFUSED_SECONDS
            _log.info("%s has %s=false: long strings are told apart by 16 bytes only", self._url, EXPENSIVE)
            return True
        most = _TOO_MANY.search(refusal)
        if most is not None and int(most[1]) <= self.leaves:
            self.leaves = max(1, int(int(most[1]) * 0.9))
            return True
        return False
