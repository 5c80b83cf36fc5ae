"""Every kind of metadata in every form that an object may be remembered in, over values at the edges of their types.

The sample in ``format-2-kinds`` was written by the code of 28 November 2026, and is kept for ever, as the others are::

    python -m tests.stores.samples.kinds http://localhost:9200
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId, ObjectMetadata
from es_skipping.clauses.clause import Ask
from es_skipping.clauses.metadata import Boxes, Intervals, Kind, Metadata, Values
from es_skipping.clauses.questions import AnyOf, HasNotNull, HasNull, Meets, OtherThan, Overlaps, Range
from es_skipping.predicates.types import parse_type
from es_skipping.stores.base import MetadataStore
from tests.stores.samples.make import FOLDER, write_sample
from tests.stores.strategies import fingerprints

__all__ = ["CLAUSES", "DEFINITION", "PLACE", "objects"]

PLACE: Final = FOLDER / "format-2-kinds"
OBJECTS: Final = 14
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "bigint": (-(2**63), -1, 0, 7, 2**63 - 1),
    "double": (-math.inf, -0.5, 0.0, 5e-324, math.inf),
    "decimal(38,2)": tuple(map(Decimal, (f"-{'9' * 36}.99", "-0.01", "0.00", "7.00", f"{'9' * 36}.99"))),
    "timestamp": (-62_135_596_800_000_000, -1, 0, 1_700_000_000_000_001, 253_402_300_799_999_999),
    "string": ("", "a", "ab\x00", "e\u0301 %_", "\uff01\U0001f600"),
    "binary": (b"", b"\x00", b"a", b"a\xff", b"\xff\xff"),
}
"""By type, ascending."""
KINDS: Final[tuple[Kind, ...]] = ("intervals", "values", "fingerprints")
INDEXES: Final = (
    *(
        IndexDefinition(f"{kind}({type})", f"Sample{kind}", (type.partition("(")[0],), kind, parse_type(type))
        for kind in KINDS
        for type in VALUES
    ),
    IndexDefinition("boxes(x,y,z)", "Sampleboxes", ("x", "y", "z"), "boxes", parse_type("double")),
)
DEFINITION: Final = DatasetDefinition("kinds", ("s3a://lake/kinds",), "parquet", INDEXES)


def _metadata(kind: Kind, values: tuple[Any, ...], n: int) -> Metadata | None:
    """Object n's; None is unknown."""
    nulls = (0, 3, None)[n % 3]
    low, high = values[n % 4], values[n % 4 + 1]
    single = [(one, one) for one in values[:: n % 2 + 1]]
    forms: list[Metadata | None]
    if kind == "intervals":
        forms = [
            None,
            Intervals((), 5),
            Intervals(None, nulls),
            Intervals(((low, high),), nulls),
            Intervals((*single,), 0),
        ]
        return forms[n % 5]
    forms = [
        None,
        Values(frozenset(), 5),
        Values(frozenset(values[n % 3 :: 2]), nulls),
        fingerprints([low, high], 10, nulls),
        fingerprints([high], 102_400, 0),
        Intervals(((low, high),), nulls),
        Intervals((), 5),
    ]
    return forms[n % 7]


def objects() -> list[ObjectMetadata]:
    """What was written."""
    made = []
    for n in range(OBJECTS):
        metadata: dict[str, Metadata] = {}
        for at, index in enumerate(INDEXES[:-1]):
            found = _metadata(index.kind, VALUES[str(index.value_type)], n + at)
            if found is not None:
                metadata[index.id] = found
        sides = ((n - 0.5, n + 0.5), (-math.inf, float(n)), (0.0, math.inf))
        if n % 4:
            metadata["boxes(x,y,z)"] = Boxes((sides, sides[::-1])[: n % 4 - 1])
        made.append(ObjectMetadata(ObjectId(f"s3a://lake/kinds/part {n}", 10 + n, 1_700_000_000_000), 5, metadata))
    return made


def _questions(index: IndexDefinition) -> list[Any]:
    if index.kind == "boxes":
        return [Meets((Range(low, low + 1), Range(None, 0.0), Range(-1.0, 5.0))) for low in (-9.0, 2.2, 5.0)]
    values = VALUES[str(index.value_type)]
    ranges = [Overlaps((Range(one, one),)) for one in values]
    ranges += [Overlaps((Range(one, other, True, True),)) for one, other in pairwise(values)]
    return [HasNull(), HasNotNull(), OtherThan(values[:2]), AnyOf(values[1:2]), AnyOf(values[2:4]), *ranges]


CLAUSES: Final = [Ask(index.id, question) for index in INDEXES for question in _questions(index)]


def build(store: MetadataStore) -> None:
    """In two changes."""
    for some in (objects()[: OBJECTS // 2], objects()[OBJECTS // 2 :]):
        with store.change(DEFINITION) as change:
            change.put(some)
            change.publish()


if __name__ == "__main__":
    write_sample(PLACE, sys.argv[1], build)
