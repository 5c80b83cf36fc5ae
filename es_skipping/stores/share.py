"""A share of a change: what another process needs in order to write some of its objects itself.

The process that began the change gives out shares (`Change.share`), others write and send receipts back, and only what
has a receipt is published (`Change.receive`). Several processes may write a share, one after the other or
at once: each object has one place in it, the same for all processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from es_skipping.catalog import ObjectId, ObjectMetadata

__all__ = ["Outcome", "Share"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one object of a share.

    Parameters
    ----------
    place
        The object's position in `Share.objects`.
    refused
        Why it is not written; the process that gave out the share must write it. Empty if it is written.
    sizes
        Estimated bytes of the metadata, by the store's names.
    """

    place: int
    refused: str = ""
    sizes: Mapping[str, int] | None = None


class Share(ABC):
    """Can be pickled. Its text shows no secret.

    Parameters
    ----------
    objects
        The objects to write.
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
