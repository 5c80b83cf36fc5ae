"""The stored definitions of protected indexes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from es_skipping.catalog import IndexDefinition, Protection
from es_skipping.errors import IndexDefinitionError
from es_skipping.predicates.types import DataType

__all__ = ["TOKEN_TYPE", "protected"]

TOKEN_TYPE: Final = DataType("bigint")
"""Of the tokens that a hashed index stores."""


def protected(definition: IndexDefinition, protection: Protection) -> IndexDefinition:
    """An index's definition with a protection. A store sees tokens of a hashed index, whatever its values are.

    Raises
    ------
    IndexDefinitionError
        The index cannot be hashed: nothing of it is an equality.
    """
    needs = tuple(sorted({*definition.needs, protection.mode}))
    if protection.mode != "hashed":
        return replace(definition, needs=needs, protection=protection)
    if definition.kind not in ("values", "fingerprints"):
        raise IndexDefinitionError(
            f"{definition.type} cannot be hashed, because only equality can be asked of hashes: pass protect='sealed', "
            "or use a ValueList, Prefix, Suffix, Formatted, BloomFilter or Hybrid"
        )
    return replace(definition, needs=needs, protection=protection, kind="values", value_type=TOKEN_TYPE)
