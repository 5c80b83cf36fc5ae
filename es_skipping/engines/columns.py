"""The columns that a filter may name: those of the schema that a dataset was indexed with."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from es_skipping.engines.literals import Refused
from es_skipping.errors import ColumnError
from es_skipping.predicates.types import DataType, parse_type

__all__ = ["Columns", "FoundColumn"]

_PADDED: Final = "__CHAR_VARCHAR_TYPE_STRING"
_DEFAULT: Final = "EXISTS_DEFAULT"


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column or a field, in the schema's own spelling."""

    path: tuple[str, ...]
    type: DataType


class Columns:
    """Finds columns by name, as Spark does if it is not case-sensitive.

    Parameters
    ----------
    schema
        The dataset's, as ``StructType.jsonValue()``.
    partitions
        The names of the directories' columns, in lower case.
    in_file
        The types of the first file's columns and fields by path in lower case, see `es_skipping.engines.footers`.
    unclear
        Those of the partitions whose type depends on which files an engine sees.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        partitions: Collection[str],
        in_file: Mapping[tuple[str, ...], str],
        unclear: Collection[str] = (),
    ) -> None:
        self._schema = schema
        self._partitions = partitions
        self._in_file = in_file
        self._unclear = unclear

    def is_unclear(self, name: str) -> bool:
        """Whether engines may compare this partition column as another type if they see fewer files."""
        return name.lower() in self._unclear

    def check(self, path: Sequence[str]) -> None:
        """Refuse a name that the dataset does not have.

        Raises
        ------
        ColumnError
            There is no such column, or several spell their names alike.
        """
        if path[0].lower() in self._partitions:
            return
        type: Any = self._schema
        for at, name in enumerate(path):
            fields = type.get("fields", ()) if isinstance(type, Mapping) else ()
            found = [field for field in fields if field["name"].lower() == name.lower()]
            if len(found) > 1:
                spelt = ", ".join(field["name"] for field in found)
                raise ColumnError(f"column {name} could be any of {spelt}: engines choose in different ways")
            if not found and at and not fields:
                return  # a field of a map or an array: not understood, and not wrong
            if not found:
                names = [*(field["name"] for field in fields), *(self._partitions if not at else ())]
                lower = {one.lower(): one for one in names}
                near = difflib.get_close_matches(name.lower(), lower, 1)
                hint = f"; did you mean {lower[near[0]]}?" if near else ""
                raise ColumnError(f"{'.'.join(path)} is not a column of this dataset, which has {_few(names)}{hint}")
            type = found[0]["type"]

    def find(self, path: Sequence[str]) -> FoundColumn:
        """The column or field at a path.

        Raises
        ------
        Refused
            Engines may see other values in it than the index was built from.
        """
        if path[0].lower() in self._partitions:
            raise Refused(f"{path[0]} is a partition column: the engine itself prunes by it")
        type: Any = self._schema
        spelt: list[str] = []
        for name in path:
            fields = type.get("fields", ()) if isinstance(type, Mapping) else ()
            found = [field for field in fields if field["name"].lower() == name.lower()]
            if len(found) != 1:
                raise Refused(f"{'.'.join(path)} is not a field of a struct")
            metadata = found[0].get("metadata") or {}
            if _PADDED in metadata:
                raise Refused(f"{name} is {metadata[_PADDED]}, which Spark may pad with spaces")
            if _DEFAULT in metadata:
                raise Refused(f"{name} has a default, which only Spark puts where a file lacks the column")
            spelt.append(found[0]["name"])
            type = found[0]["type"]
        if not isinstance(type, str):
            raise Refused(f"{'.'.join(spelt)} is not of a simple type")
        parsed = parse_type(type)
        if not parsed.supported or parsed.name == "binary":
            raise Refused(f"values of type {type} are not compared")
        stored = self._in_file.get(tuple(name.lower() for name in spelt))
        if stored != str(parsed):
            raise Refused(
                f"{'.'.join(spelt)} was {parsed} when indexed, and the first file has "
                + (f"it as {stored}" if stored else "no such column")
            )
        return FoundColumn(tuple(spelt), parsed)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") if names else "no columns"
