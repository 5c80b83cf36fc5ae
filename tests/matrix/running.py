"""The sessions in which cells run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.matrix.cells import Cell
from tests.s3_server import shared_server

__all__ = ["cells_here", "session_of"]


def cells_here(cells: Iterable[Cell]) -> list[Cell]:
    """Those of this Python's Spark."""
    import pyspark

    here = "oldest" if pyspark.__version__.startswith("4.0.") else "newest"
    return [cell for cell in cells if cell["spark"] == here]


def session_of(client: str, folder: Path) -> Any:
    """A first session, of a classic client or of Spark Connect in local mode."""
    from pyspark.sql import SparkSession

    import es_skipping as esk

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["SPARK_TESTING"] = "1"  # the server of Spark Connect then takes any port that is free
    builder: Any = SparkSession.builder
    builder = builder.master("local[2]") if client == "classic" else builder.remote("local[2]")
    for key, value in {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(shared_server().launch_conf if client == "connect" else {}),  # a classic session takes it while it runs
    }.items():
        builder = builder.config(key, value)
    return esk.configure(builder).getOrCreate()
