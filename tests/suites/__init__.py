"""Suites that Spark's authors wrote, run with skipping off and on: the same tests must pass.

``python -m tests.suites`` runs them; ``helper`` is the process that indexes each dataset that they read.
"""
