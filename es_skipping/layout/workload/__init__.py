"""What a workload asks: its log, the queries in it, and whether laying out for it will pay."""
