"""What every metadata store promises. Subclass `StoreContract`, give it a store, and every test here runs on it.

One module holds one promise. `examples` and `samples` have what other tests of stores use too.
"""

from __future__ import annotations

from tests.stores.contract.answers import Answers
from tests.stores.contract.at_random import AtRandom
from tests.stores.contract.by_key import ByKey
from tests.stores.contract.changes import Changes
from tests.stores.contract.datasets import Datasets
from tests.stores.contract.examples import (
    BOX,
    DOUBLE,
    INT,
    LIST,
    MINMAX,
    ODD_PATHS,
    STRING,
    asks,
    between,
    dataset_definition,
    entry_of,
    keys,
    minmax,
    object_id,
    object_metadata,
    skipped,
    stored,
    write,
)
from tests.stores.contract.guarantors import Guarantors
from tests.stores.contract.publishing import Publishing
from tests.stores.contract.samples import KINDS_AND_TYPES, sample_metadata, sample_questions
from tests.stores.contract.unknown import Unknown

__all__ = [
    "BOX",
    "DOUBLE",
    "INT",
    "LIST",
    "MINMAX",
    "ODD_PATHS",
    "STRING",
    "asks",
    "between",
    "dataset_definition",
    "entry_of",
    "keys",
    "minmax",
    "object_id",
    "object_metadata",
    "skipped",
    "stored",
    "write",
    "KINDS_AND_TYPES",
    "StoreContract",
    "sample_metadata",
    "sample_questions",
]


class StoreContract(Datasets, Changes, Publishing, Unknown, Answers, Guarantors, ByKey, AtRandom):
    """Subclass it in a test module, as ``class TestMyStore(StoreContract)``."""
