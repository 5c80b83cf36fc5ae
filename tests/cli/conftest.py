"""The node that the demo's test on Elasticsearch talks to."""

from __future__ import annotations

from tests.elasticsearch_node import elasticsearch_url

__all__ = ["elasticsearch_url"]
