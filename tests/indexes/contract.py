"""The contract of index types ships with the package: `es_skipping.testing`."""

from es_skipping.testing.contract import IndexContract, Setup

__all__ = ["IndexContract", "Setup"]
