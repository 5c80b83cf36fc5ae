"""Hashed indexes: each value is replaced by a token, and a question about values by one about tokens.

A token is 64 bits of a keyed BLAKE2b of the value. Equal values have equal tokens, so that an absent token proves an
absent value; nothing else can be proved. An object gets as many tokens as the next power of two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from es_skipping.catalog import IndexDefinition
from es_skipping.clauses.clause import KEEP, Ask, Clause, with_asks
from es_skipping.clauses.fingerprints import canonical, cell_of, cells_of, hash_of, space_for
from es_skipping.clauses.metadata import Fingerprints, Metadata, Values
from es_skipping.clauses.questions import AnyOf
from es_skipping.predicates.types import Value
from es_skipping.stores.protection.keys import Key

__all__ = ["Tokenizer", "Tokens", "only_equality", "rewritten"]

_MAX_TOKENS_PER_OBJECT: Final = 1 << 16
_MAX_TOKENS_PER_QUESTION: Final = 1 << 16
_MAX_BITS: Final = 32
"""Spaces of fingerprints are asked for up to 2 to this many values."""


@dataclass(frozen=True, slots=True)
class Tokens(Values):
    """Metadata that is tokens already, as a store returns it."""


class Tokenizer:
    """Makes the tokens of one index.

    Parameters
    ----------
    index
        A hashed index.
    key
        Its key.
    """

    def __init__(self, index: IndexDefinition, key: Key) -> None:
        assert index.protection is not None
        self._secret = key.derived("hash", index.protection.salt, index.id)
        fpp = index.parameters.get("fpp")
        self._spaces: tuple[int, ...] = ()
        if isinstance(fpp, (int, float)) and 0 < fpp < 1:
            self._spaces = tuple(sorted({space_for(1 << bits, float(fpp)) for bits in range(_MAX_BITS + 1)}))

    def metadata(self, plain: Metadata, object: bytes) -> Metadata | None:
        """An object's tokens in place of its metadata; None if only its values could say something.

        Parameters
        ----------
        object
            The object's key: the tokens that fill up a number are the same each time.
        """
        match plain:
            case Tokens():
                return plain
            case Values(values):
                parts = [b"v" + canonical(value) for value in values] if _is_utf8(values) else None
            case Fingerprints(space, count, packed) if space in self._spaces and count <= _MAX_TOKENS_PER_OBJECT:
                parts = [_cell(space, cell) for cell in cells_of(packed, space, count)]
            case _:
                return None
        if parts is None or len(parts) > _MAX_TOKENS_PER_OBJECT:
            return None
        if parts:
            missing = (1 << (len(parts) - 1).bit_length()) - len(parts)
            parts += [b"f" + object + number.to_bytes(4, "big") for number in range(missing)]
        return Tokens(frozenset(map(self._token, parts)), None, None)

    def question(self, asked: AnyOf) -> AnyOf | None:
        """The question about tokens that an object with any of these values answers with yes; None if there is none."""
        if not _is_utf8(asked.values) or len(asked.values) * (1 + len(self._spaces)) > _MAX_TOKENS_PER_QUESTION:
            return None
        tokens = {self._token(b"v" + canonical(value)) for value in asked.values}
        for value in asked.values if self._spaces else ():
            hash = hash_of(value)
            tokens.update(self._token(_cell(space, cell_of(hash, space))) for space in self._spaces)
        return AnyOf(tuple(sorted(tokens)))

    def _token(self, data: bytes) -> int:
        digest = hashlib.blake2b(data, key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


def _cell(space: int, cell: int) -> bytes:
    return b"c" + space.to_bytes(16, "big") + cell.to_bytes(16, "big")


def _is_utf8(values: Iterable[Value]) -> bool:
    try:
        for value in values:
            if isinstance(value, str):
                value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def rewritten(clause: Clause, hashed: Callable[[str], Tokenizer | None]) -> Clause:
    """A clause about values as one about tokens, for the indexes that have any; what cannot be asked is unknown."""

    def change(ask: Ask) -> Clause:
        tokenizer = hashed(ask.index)
        if tokenizer is None:
            return ask
        asked = tokenizer.question(ask.question) if isinstance(ask.question, AnyOf) else None
        return KEEP if asked is None else Ask(ask.index, asked)

    return with_asks(clause, change)


def only_equality(clause: Clause, hashed: Collection[str]) -> Clause:
    """A clause without the questions that these hashed indexes do not answer, which are all but equality.

    Examples
    --------
    >>> from es_skipping.clauses.clause import conjunction
    >>> from es_skipping.clauses.questions import HasNull
    >>> asked = conjunction([Ask("valuelist(city)", HasNull()), Ask("minmax(day)", HasNull())])
    >>> only_equality(asked, {"valuelist(city)"})
    Ask(index='minmax(day)', question=HasNull(), about='')
    """
    return with_asks(clause, lambda ask: KEEP if ask.index in hashed and not isinstance(ask.question, AnyOf) else ask)
