"""Workloads: the log, its queries, and whether a layout will pay."""
