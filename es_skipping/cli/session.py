"""The Spark session of a command."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from es_skipping.errors import SettingError
from es_skipping.settings import PREFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["dataset_named", "given_conf", "key_values", "spark_session"]

_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
"""Turns off Spark's own progress bar and warnings, which would mix with ours; ``--conf`` can restore them."""


def key_values(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``KEY=VALUE`` texts into a dict.

    Raises
    ------
    SettingError
        A text has no ``=`` or no key. The message shows only the key, because the value may be a secret.

    Examples
    --------
    >>> key_values(["a=1", "b=x=y"], "--conf")
    {'a': '1', 'b': 'x=y'}
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingError(f"{option} {key.strip() or '?'} has no value: write {option} KEY=VALUE")
        pairs[key.strip()] = value
    return pairs


def given_conf(args: argparse.Namespace) -> dict[str, str]:
    """The Spark settings of the command line; ``--store`` overrides ``--conf``."""
    conf = key_values(args.conf, "--conf")
    if args.store:
        conf[PREFIX + "store.url"] = args.store
    return conf


@contextmanager
def spark_session(args: argparse.Namespace, defaults: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session with es_skipping, stopped at the end.

    Parameters
    ----------
    args
        The command line: ``conf``, ``store``, ``master`` and, if the command has it, ``view``.
    defaults
        The command's settings, which the command line overrides.
    """
    import es_skipping as esk
    from es_skipping.spark.formats import INDEXED, TABLES

    try:
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SettingError("PySpark is not installed: pip install 'es-skipping[spark]'") from error

    builder = SparkSession.builder.appName(f"es-skipping {args.command}")
    if args.master:
        builder = builder.master(args.master)
    for key, value in {**_QUIET, **(defaults or {}), **given_conf(args)}.items():
        builder = builder.config(key, value)
    if not args.debug:
        # PySpark logs an analysis error as pages of JSON before it raises it; we print one line.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    views = key_values(getattr(args, "view", ()), "--view")
    spark = esk.configure(builder).getOrCreate()
    try:
        esk.enable(spark)
        for name, place in views.items():
            before, colon, after = place.partition(":")
            format, path = (before, after) if colon and before in INDEXED | TABLES else ("parquet", place)
            spark.read.format(format).load(path).createOrReplaceTempView(name)
        yield spark
    finally:
        spark.stop()


def dataset_named(args: argparse.Namespace) -> dict[str, Any]:
    """The dataset that a command names, as keyword arguments of `es_skipping.Dataset`."""
    named: dict[str, Any] = {"table": args.dataset} if args.table else {"path": args.dataset}
    if args.format:
        named["format"] = args.format
    if args.option:
        named["options"] = key_values(args.option, "--option")
    if args.schema:
        named["schema"] = args.schema
    return named
