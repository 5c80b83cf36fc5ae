"""Names of indices, aliases and fields."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_PREFIX", "Names", "column_of", "field_of", "group_name"]

DEFAULT_PREFIX: Final = "es-skipping"
_MAX_FIELD: Final = 200
_ESCAPED: Final = re.compile(r"~([0-9a-f]+)~")


@dataclass(frozen=True, slots=True)
class Names:
    """Names in a cluster; the prefix separates this package's names from others."""

    prefix: str = DEFAULT_PREFIX

    @property
    def datasets(self) -> str:
        """Alias of the index with one document per dataset."""
        return f"{self.prefix}-datasets"

    @property
    def keys(self) -> str:
        """Index with the objects' keys, packed, by ordinal."""
        return f"{self.prefix}-keys"

    @property
    def sealed(self) -> str:
        """Index with the files of sealed indexes."""
        return f"{self.prefix}-sealed"

    @property
    def queries(self) -> str:
        """Alias of the query log's indices, one a day."""
        return f"{self.prefix}-queries"

    @property
    def all_objects(self) -> str:
        return f"{self.prefix}-objects-*"

    def objects(self, dataset: str) -> str:
        """Alias of the index that holds the objects of a dataset."""
        return f"{self.prefix}-objects-{dataset}"

    def new_generation(self, dataset: str) -> str:
        """An index for a generation of a dataset that no other generation has ever had.

        Dataset ids have no dot, so the name tells the dataset.
        """
        moment = time.strftime("%Y%m%d%H%M%S", time.gmtime())
        return f"{self.objects(dataset)}.{moment}-{secrets.token_hex(4)}"

    def named_generation(self, dataset: str, name: str) -> str:
        """The index of the generation that a change of this name builds."""
        return f"{self.objects(dataset)}.{name}"

    def generations(self, dataset: str) -> str:
        """A pattern of every generation of a dataset."""
        return f"{self.objects(dataset)}.*"


def field_of(column: str) -> str:
    """A column's name as (part of) a field's name, from which `column_of` gets it back.

    Letters, digits and ``_`` stay; anything else, such as a dot, which would make an object of it, becomes its code
    point: ``~2e~``.

    Examples
    --------
    >>> field_of("a.b c")
    'a~2e~b~20~c'
    """
    return "".join(c if c == "_" or c.isalnum() else f"~{ord(c):x}~" for c in column)


def column_of(field: str) -> str:
    """The column's name that `field_of` was given.

    Examples
    --------
    >>> column_of("a~2e~b~20~c")
    'a.b c'
    """
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), field)


def group_name(type: str, columns: Sequence[str], used: Collection[str]) -> str:
    """The name of an index's group of fields: type and columns, and a number where that name was given away before.

    Examples
    --------
    >>> group_name("MinMax", ["ts"], {"minmax_ts"})
    'minmax_ts_2'
    """
    name = "_".join([field_of(type.lower()), *map(field_of, columns)])[:_MAX_FIELD]
    if "_" not in name:
        name += "_"  # fields of the document itself have none
    number, numbered = 1, name
    while numbered in used:
        number += 1
        numbered = f"{name}_{number}"
    return numbered
