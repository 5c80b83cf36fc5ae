"""The helper's life: it reads a line on standard input, serves, and ends when standard input ends.

A process that dies, by ``kill -9`` too, closes its pipes. So the helper never outlives its JVM.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Mapping
from typing import BinaryIO, Final

from es_skipping.errors import EsSkippingError
from es_skipping.helper.address import private_directory, socket_in
from es_skipping.helper.host import HelperHost
from es_skipping.helper.jvm import Jvm
from es_skipping.helper.server import Server
from es_skipping.lookup.built_with import RELEVANT_SETTINGS
from es_skipping.lookup.reply import PROTOCOL
from es_skipping.lookup.service import LookupService
from es_skipping.lookup.stores import WAREHOUSE
from es_skipping.lookup.turns import Turns
from es_skipping.settings import Settings

__all__ = ["serve"]

_LOOKUPS_AT_ONCE: Final = 8
"""More would only wait for each other: a look-up is mostly Python's own work, or a store's."""

_WARM: Final = (
    "es_skipping.stores.parquet.store",
    "es_skipping.stores.parquet.files",
    "es_skipping.stores.elasticsearch.store",
    "es_skipping.indexes.registry",
)

_log = logging.getLogger("es_skipping")


def serve(commands: BinaryIO, ready: BinaryIO) -> None:
    """Serve one JVM until ``commands`` ends.

    Parameters
    ----------
    commands
        Its first line is a JSON object: ``token``, ``application`` (Spark's id, or null) and ``settings`` (those that
        the application was launched with). Nothing follows; its end is the end of the JVM.
    ready
        Gets one line, when look-ups are possible: a JSON object with ``protocol``, ``socket``, ``settings`` (the keys
        that each request must carry) and ``pid``.

    Raises
    ------
    EsSkippingError
        The first line is missing: somebody started the command by hand.
    SettingError
        No directory can hold the socket.
    """
    try:
        start = json.loads(commands.readline())
        token, application, launched = str(start["token"]), start["application"], dict(start["settings"])
    except (ValueError, KeyError, TypeError):
        raise EsSkippingError(
            "serve is started by Spark, which writes a line of JSON to its standard input: put "
            "spark.plugins=io.esskipping.SkippingPlugin into spark-defaults.conf"
        ) from None
    for module in _WARM:
        importlib.import_module(module)
    jvm = Jvm()
    service = LookupService(HelperHost(jvm, application), Turns(_LOOKUPS_AT_ONCE), launched)
    directory = private_directory()
    try:
        server = Server(socket_in(directory), token, service.answer, jvm, service.registry.forget)
        threading.Thread(target=server.serve_forever, name="es-skipping-serve", daemon=True).start()
        said = {
            "protocol": PROTOCOL,
            "socket": str(socket_in(directory)),
            "settings": [*RELEVANT_SETTINGS, WAREHOUSE],
            "pid": os.getpid(),
        }
        ready.write(json.dumps(said).encode() + b"\n")
        ready.flush()
        threading.Thread(target=_warm, args=(service, launched), name="es-skipping-warm", daemon=True).start()
        while commands.read(1 << 16):
            pass
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _warm(service: LookupService, settings: Mapping[str, str]) -> None:
    """Read the list of datasets before the first query needs it."""
    try:
        parsed = Settings(settings)
        store = service.store(settings)
        service.registry.find(store, [], None, parsed["registry.lifetime"], parsed["store.buildTimeout"])
    except Exception as error:  # the first look-up says so, where it matters
        _log.info("the store could not be read ahead: %s", error)
