"""Fixtures of the stores' tests."""

from tests.elasticsearch_node import elasticsearch_url

__all__ = ["elasticsearch_url"]
