"""What builds ship to workers, where several run at the same time."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from es_skipping.build.shipping import own_python


class Context:
    """The parts of a SparkContext that say which Python its workers run."""

    master = "local[2]"
    pythonExec = "python3"
    _jsc = SimpleNamespace(sc=lambda: SimpleNamespace(conf=lambda: SimpleNamespace(contains=lambda key: False)))


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return cast(Any, SimpleNamespace(sparkContext=Context()))  # type: ignore[no-any-return]


def test_a_build_that_ends_leaves_its_python_to_the_others(spark: SparkSession) -> None:
    foreground, background = own_python(spark), own_python(spark)
    foreground.__enter__()
    background.__enter__()
    assert spark.sparkContext.pythonExec == sys.executable
    foreground.__exit__(None, None, None)
    assert spark.sparkContext.pythonExec == sys.executable, "the other one has not made its job yet"
    background.__exit__(None, None, None)
    assert spark.sparkContext.pythonExec == "python3"


def test_a_python_that_the_user_chose_stays(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "python3.11")
    with own_python(spark):
        assert spark.sparkContext.pythonExec == "python3"
