"""The clause algebra: conditions on metadata, how a filter becomes one (Merge-Clause), and what they mean.

Pure Python: neither pyspark nor a store is imported here.
"""
