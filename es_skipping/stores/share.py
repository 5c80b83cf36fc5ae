"""A share of a change: what another process needs in order to write some of its objects itself.

The process that began the change gives out shares (`Change.share`), others write and send receipts back, and only what
a receipt came of is published (`Change.receive`). A share may be written by several processes, one after the other or
at once: each object has one place in it, the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from es_skipping.catalog import ObjectId, ObjectMetadata

__all__ = ["Outcome", "Share"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one object of a share.

    Parameters
    ----------
    place
        Of the object in `Share.objects`.
    refused
        Why it is not written; the process that gave the share out has to write it. Empty where it is written.
    sizes
        About how many bytes the metadata take, by names of the store's.
    """

    place: int
    refused: str = ""
    sizes: Mapping[str, int] | None = None


class Share(ABC):
    """Can be pickled. Its text shows no secret.

    Parameters
    ----------
    objects
        Which are to be written.
    """

    objects: tuple[ObjectId, ...]

    @abstractmethod
    def reach(self) -> None:
        """Whether this process can write at all.

        Raises
        ------
        EsSkippingError
            It cannot; the message says what it lacks.
        """

    @abstractmethod
    def put(self, objects: Iterable[tuple[int, ObjectMetadata]]) -> Iterator[Outcome]:
        """Write objects of the share, given with their places; an outcome for each, once it is certain.

        The iterable is consumed with bounded memory. What cannot be written is refused, and no error.
        """
