"""Building without Spark: pyarrow lists and reads Parquet files, and the same collectors summarise them."""
