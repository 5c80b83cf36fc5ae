"""Faults of real processes, through Spark, with seconds of waiting each: ``make faults``, not ``make test``."""
