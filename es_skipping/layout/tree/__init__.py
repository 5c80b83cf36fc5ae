"""A query tree: rows are divided by the conditions of queries, from the root down to the blocks."""
