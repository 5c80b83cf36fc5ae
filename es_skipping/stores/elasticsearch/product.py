"""Which product answers: the reply of another one is never taken for Elasticsearch's."""

from __future__ import annotations

from typing import Any, Final

from elastic_transport import ApiResponseMeta, Transport, TransportApiResponse

from es_skipping.errors import StoreError

__all__ = ["SUPPORTED_MAJORS", "CheckedTransport"]

SUPPORTED_MAJORS: Final = ("8", "9")
"""The major versions of Elasticsearch that the store speaks to."""

_SPEAKS: Final = f"es_skipping speaks to Elasticsearch {' and '.join(SUPPORTED_MAJORS)}"
_FROM_THE_PRODUCT: Final = frozenset({200, 201, 400, 404, 405, 406})
"""Replies that the product itself gives. Others, such as 401 and 503, may be those of a proxy in front of it."""


class CheckedTransport(Transport):
    """Sends requests, and refuses a server that does not call itself Elasticsearch.

    The client itself checks this only where a request succeeds. OpenSearch answers most requests of a store with 400,
    404 or 406, and a 404 would mean that a dataset has no index.
    """

    _is_elasticsearch = False

    def perform_request(self, method: str, target: str, **options: Any) -> TransportApiResponse:
        """Send a request.

        Raises
        ------
        StoreError
            What answers is not Elasticsearch.
        """
        response = super().perform_request(method, target, **options)
        if not self._is_elasticsearch:
            meta = response.meta
            if meta.headers.get("x-elastic-product") == "Elasticsearch":
                self._is_elasticsearch = True
            elif meta.status in _FROM_THE_PRODUCT:
                raise StoreError(f"{self.node_pool.get().base_url} is {self._product(meta, options)}; {_SPEAKS}")
        return response

    def _product(self, meta: ApiResponseMeta, options: dict[str, Any]) -> str:
        """What the server calls itself."""
        headers = {name: value for name, value in options["headers"].items() if name.lower() != "content-type"}
        try:
            found = (
                super()
                .perform_request(
                    "GET", "/", **{**options, "headers": {**headers, "accept": "application/json"}, "body": None}
                )
                .body
            )
            version = found["version"]
            if version.get("distribution") == "opensearch":
                return f"OpenSearch {version['number']}"
            return f"not Elasticsearch of these versions, but calls itself version {version['number']}"
        except Exception:  # the page that every version has: without it there is no name
            return f"not Elasticsearch: its reply {meta.status} lacks the header X-Elastic-Product"
