"""Lets a helper process answer look-ups of a PySpark application, as one does where no Python drives Spark."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from es_skipping.spark import bridge
from tests.clients.applications import helpers_of

__all__ = ["HelperProcess"]


class HelperProcess:
    """The shim asks it while `answers` lasts, and the driver before and after.

    Parameters
    ----------
    spark
        A session of the application.
    folder
        Exists.
    launched
        Settings as if the application had been launched with them: the helper resolves no other reference to a secret.
    environment
        The helper's variables. It has them besides those of the JVM, which began before the test set any.
    """

    def __init__(
        self, spark: SparkSession, folder: Path, launched: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        python = folder / "python"
        variables = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
        python.write_text("\n".join(["#!/bin/sh", *variables, f'exec {shlex.quote(sys.executable)} "$@"', ""]))
        python.chmod(0o755)
        conf: Any = spark.sparkContext._jsc.sc().conf()
        for key, value in {"helper.python": str(python), "helper.startTimeout": "100s", **launched}.items():
            conf.set(f"spark.es_skipping.{key}", value)
        jvm: Any = spark._jvm
        self._pid = jvm.java.lang.ProcessHandle.current().pid()
        self._loader = bridge.jvm_api(spark).getClass().getClassLoader()
        self._driver = self._loader.loadClass("io.esskipping.scan.Bridge").getDeclaredField("driver")
        self._driver.setAccessible(True)

    @contextmanager
    def answers(self) -> Iterator[None]:
        """While this lasts, the helper answers."""
        driver = self._driver.get(None)
        self._driver.set(None, None)
        try:
            yield
        finally:
            self._driver.set(None, driver)

    def runs(self) -> bool:
        """Whether the application has started one."""
        return bool(helpers_of(self._pid))

    def end(self) -> None:
        """End the process. The next one is launched with its own settings."""
        self._loader.loadClass("io.esskipping.helper.Helper").getMethod("replaced", None).invoke(None, None)
