"""Which conditions a layout is made by: mined from a workload, ranked, and evaluated by Spark."""
