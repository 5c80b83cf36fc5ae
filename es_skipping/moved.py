"""Old names of modules. Until version 0.2 an import by an old name works, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

__all__ = ["MOVED"]

_ROOT: Final = "es_skipping."
MOVED: Final = {
    **{
        f"{_ROOT}indexes.{name}": f"{_ROOT}indexes.toolkit.{name}"
        for name in (
            *("arguments", "budget", "column", "cover", "ends", "hashes", "metrics"),
            *("sedona", "shapes", "stretches", "summaries"),
        )
    },
    **{
        f"{_ROOT}spark.{name}": f"{_ROOT}build.{name}"
        for name in (
            *("budget", "collect", "columns", "dataset", "executor_writing", "footers", "listing", "narrowing"),
            *("object_ids", "shipping", "source", "text_doubts"),
        )
    },
    **{
        f"{_ROOT}spark.{name}": f"{_ROOT}lookup.{name}"
        for name in ("built_with", "guard", "query_log", "registry", "reply", "value_settings", "verdict")
    },
    f"{_ROOT}spark.build": f"{_ROOT}build.update",
    f"{_ROOT}spark.collect_worker": f"{_ROOT}build.worker",
    f"{_ROOT}reports.clause_text": f"{_ROOT}clauses.text",
    f"{_ROOT}reports.details": f"{_ROOT}lookup.details",
    f"{_ROOT}layout.groups.picture": f"{_ROOT}layout.chart",
    f"{_ROOT}layout.workload.queries": f"{_ROOT}workload.queries",
    **{f"{_ROOT}layout.features.{name}": f"{_ROOT}workload.{name}" for name in ("choosing", "families", "mining")},
    f"{_ROOT}predicates.likes": f"{_ROOT}predicates.text",
    f"{_ROOT}stores.open": f"{_ROOT}stores.registry",
    f"{_ROOT}stores.elasticsearch.complement": f"{_ROOT}stores.elasticsearch.bools",
    f"{_ROOT}stores.elasticsearch.shape": f"{_ROOT}stores.elasticsearch.bools",
}
"""The old name of a module and the new one."""


class _Moved(MetaPathFinder, Loader):
    """Imports a module by its new name when it is asked for by its old one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = MOVED[spec.name]
        warnings.warn(f"{spec.name} is now {name}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs again; the module keeps the name that it has now."""
        old = module.__spec__
        assert old is not None
        module.__spec__ = old.loader_state


sys.meta_path.append(_Moved())
