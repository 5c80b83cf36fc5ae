"""Ships what executor tasks need: this package, its jar, and a Python with pyarrow."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from es_skipping.spark.bridge import ship_jar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["own_python", "package_archive", "ship_package"]

_shipped: set[str] = set()
_ship_lock = threading.Lock()
_own_pythons: dict[SparkContext, tuple[int, str]] = {}
"""How many builds need this Python in each context's workers, and the one that was set before."""
_python_lock = threading.Lock()


def ship_package(spark: SparkSession) -> None:
    """Give executors this package's jar, and on other machines its Python code. They themselves need pyarrow and
    pandas."""
    ship_jar(spark)
    context = spark.sparkContext
    if _is_local(context.master):
        return
    with _ship_lock:
        if context.applicationId in _shipped:
            return
        import tempfile

        context.addPyFile(package_archive(tempfile.mkdtemp(prefix="es-skipping-")))
        _shipped.add(context.applicationId)


def package_archive(folder: str) -> str:
    """Write this package's Python code, and the list of formats that it reads, into an archive in a folder."""
    import zipfile
    from pathlib import Path

    package = Path(__file__).resolve().parent.parent
    archive = Path(folder) / "es_skipping.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted([*package.rglob("*.py"), *package.rglob("*.properties")]):
            out.write(file, Path(package.name) / file.relative_to(package))
    return str(archive)


@contextmanager
def own_python(spark: SparkSession) -> Iterator[None]:
    """In local mode run workers with this Python, unless another was configured: ``python3`` may lack pyarrow.

    Builds may run at the same time, as one in the background does. The last that ends restores what was set.
    """
    context = spark.sparkContext
    chosen = "PYSPARK_PYTHON" in os.environ or context._jsc.sc().conf().contains("spark.pyspark.python")
    if chosen or not _is_local(context.master) or not sys.executable:
        yield
        return
    with _python_lock:
        inside, before = _own_pythons.get(context, (0, context.pythonExec))
        _own_pythons[context] = inside + 1, before
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        with _python_lock:
            inside, before = _own_pythons.pop(context)
            if inside > 1:
                _own_pythons[context] = inside - 1, before
            else:
                context.pythonExec = before


def _is_local(master: str | None) -> bool:
    return master is None or master == "local" or master.startswith("local[")
