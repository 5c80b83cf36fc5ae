"""Lists the files that a filter needs, for DuckDB, Polars and pyarrow, without Spark and without a JVM."""
