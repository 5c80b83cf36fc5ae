"""SQL statements on skipping indexes, carried out for a session."""
