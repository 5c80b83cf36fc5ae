"""Index types by name: built-in ones, those of installed packages (entry points), and registered ones."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from es_skipping.clauses.metadata import Kind
from es_skipping.errors import IndexDefinitionError
from es_skipping.indexes.base import Index

if TYPE_CHECKING:
    from es_skipping.catalog import IndexDefinition

__all__ = [
    "ENTRY_POINTS",
    "from_definition",
    "index_class",
    "index_id",
    "index_types",
    "readable_id",
    "register",
]

ENTRY_POINTS: Final = "es_skipping.indexes"
"""Group of entry points; each has its index type's name and points to the class."""

_OURS: Final = {
    "MetricDistance": "es_skipping.indexes.metricdistance",
    "BloomFilter": "es_skipping.indexes.bloomfilter",
    "Hybrid": "es_skipping.indexes.hybrid",
    "MinMax": "es_skipping.indexes.minmax",
    "ValueList": "es_skipping.indexes.valuelist",
    "Prefix": "es_skipping.indexes.prefix",
    "Suffix": "es_skipping.indexes.suffix",
    "GeoBox": "es_skipping.indexes.geobox",
    "GeometryBox": "es_skipping.indexes.geometrybox",
    "Features": "es_skipping.indexes.features",
    "Induced": "es_skipping.indexes.induced",
    "Remembered": "es_skipping.indexes.remembered",
    "Formatted": "es_skipping.indexes.formatted",
    "GapList": "es_skipping.indexes.gaplist",
}

_registered: Final[dict[str, type[Index]]] = {}

_QUOTED_OR_COMMA: Final = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"|,(?! )")

C = TypeVar("C", bound=type[Index])


def register(cls: C) -> C:
    """Register an index type under its class name, in this process. Can be used as a decorator.

    Registering the same class again does nothing; another class under a taken name is an error.

    Raises
    ------
    IndexDefinitionError
    """
    name = cls.__name__
    if not (isinstance(cls, type) and issubclass(cls, Index)):
        raise IndexDefinitionError(f"{name} is not an index type: derive it from es_skipping.indexes.base.Index")
    _require_kind(cls)
    known = _find(name)
    if known is not None and known is not cls:
        raise IndexDefinitionError(
            f"an index type {name} exists already, {known.__module__}.{known.__qualname__}: rename yours"
        )
    _registered[name] = cls
    return cls


def index_class(name: str) -> type[Index]:
    """The class of an index type.

    Raises
    ------
    IndexDefinitionError
        No installed or registered package provides it.

    Examples
    --------
    >>> index_class("MinMax").__name__
    'MinMax'
    """
    found = _find(name)
    if found is None:
        raise IndexDefinitionError(
            f"unknown index type {name!r}; the index types here are {', '.join(index_types())}. If one of your "
            f"packages provides it, install the package, or call es_skipping.indexes.registry.register in this process"
        )
    return found


def index_types() -> list[str]:
    """The names of all index types in this process."""
    return sorted(
        {
            *_OURS,
            *_registered,
            *(point.name for point in entry_points(group=ENTRY_POINTS)),
        }
    )


def _find(name: str) -> type[Index] | None:
    if name in _registered:
        return _registered[name]
    found: Any
    if name in _OURS:
        found = getattr(importlib.import_module(_OURS[name]), name)
    else:
        points = entry_points(group=ENTRY_POINTS, name=name)
        if not points:
            return None
        found = next(iter(points)).load()
        if not (isinstance(found, type) and issubclass(found, Index)):
            raise IndexDefinitionError(
                f"The entry point {name} of {ENTRY_POINTS} leads to {found!r}, which is not an index type"
            )
    cls: type[Index] = found
    _require_kind(cls)
    _registered[name] = cls
    return cls


def _require_kind(cls: type[Index]) -> None:
    kind = getattr(cls, "kind", None)
    if kind not in get_args(Kind):
        raise IndexDefinitionError(f"{cls.__name__}: kind is {kind!r}; stores support {', '.join(get_args(Kind))}")


def from_definition(definition: IndexDefinition) -> Index:
    """Make the index of a stored definition.

    Raises
    ------
    IndexDefinitionError
        Its type is unknown here, or refuses the stored columns or parameters, which another version of it wrote.
    """
    cls = index_class(definition.type)
    try:
        index = cls.from_definition(definition.columns, definition.parameters)
    except TypeError as error:
        raise IndexDefinitionError(
            f"index {definition.id} cannot be made from columns {definition.columns} and parameters "
            f"{dict(definition.parameters)}: {error}; another version of {cls.__name__} wrote it"
        ) from error
    protection = definition.protection
    return index if protection is None else index.protected(protection.mode, protection.key)


def index_id(index: Index, column_texts: Sequence[str]) -> str:
    """An index's id in its dataset's definition: type, columns, and parameters that differ from their defaults.

    Parameters
    ----------
    column_texts
        The columns as the definition stores them.

    Examples
    --------
    >>> from es_skipping.indexes.prefix import Prefix
    >>> index_id(Prefix("db_name", length=15), ["db_name"])
    'prefix(db_name,length=15)'
    """
    defaults: dict[str, Any] = {}
    if dataclasses.is_dataclass(index):
        defaults = {field.name: field.default for field in dataclasses.fields(index)}
    parameters = [f"{name}={value}" for name, value in index.naming.items() if defaults.get(name) != value]
    return f"{index.type.lower()}({','.join([*index.named_by(column_texts), *parameters])})"


def readable_id(id: str) -> str:
    """An index id as people write the index.

    Examples
    --------
    >>> readable_id("minmax(ts)"), readable_id("prefix(db_name,length=15)")
    ('MinMax(ts)', 'Prefix(db_name, length=15)')
    """
    type, parenthesis, arguments = id.partition("(")
    name = next((known for known in (*_OURS, *_registered) if known.lower() == type), None)
    if name is None or not parenthesis:
        return id
    return name + parenthesis + _QUOTED_OR_COMMA.sub(lambda found: ", " if found[0] == "," else found[0], arguments)
