"""The same queries under every pair of circumstances: versions of Spark, clients, settings, formats, tables, stores.

make matrix
"""
