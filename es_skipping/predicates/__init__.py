"""Spark's filters as typed expression trees: how they are read, their normal form, and exact tests of strings.

Pure Python: neither pyspark nor a store is imported here.
"""
