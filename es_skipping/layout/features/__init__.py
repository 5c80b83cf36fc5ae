"""The features of a layout: mined from a workload, ranked, and evaluated by Spark."""
