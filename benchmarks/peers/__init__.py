"""es_skipping beside plain Spark, Delta, Iceberg, DuckDB and Polars, over the same rows and queries in one run."""
