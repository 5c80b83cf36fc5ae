"""The demo: real and standard data, indexes on it, and queries with skipping off and on."""
