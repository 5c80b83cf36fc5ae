"""Finding, reading and publishing the manifests of a store, and deleting what no snapshot needs any more."""

from __future__ import annotations

import contextlib
import errno
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from es_skipping.errors import EsSkippingError, StoreConflict, StoreError
from es_skipping.stores.parquet.files import Files
from es_skipping.stores.parquet.manifest import (
    Manifest,
    Retired,
    manifest_number,
    manifest_path,
    manifests_directory,
    segment_path,
    segments_directory,
)
from es_skipping.stores.parquet.segment import segment_age

__all__ = ["Snapshots", "conflict", "store_errors"]

_log = logging.getLogger(__name__)
_DATASET: Final = re.compile(r"[a-z0-9_-]{1,80}")
_MOST_RETIRED: Final = 50


@contextlib.contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Turn whatever the file system raises into a `StoreError` that says what was tried."""
    try:
        yield
    except EsSkippingError:
        raise
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreError(
                f"{what} is not permitted ({error}): give access, or set spark.es_skipping.store.url to another place"
            ) from error
        raise StoreError(f"{what} failed: {type(error).__name__}: {error}") from error
    except Exception as error:  # file systems differ in what they raise
        raise StoreError(f"{what} failed: {type(error).__name__}: {error}") from error


def conflict(dataset: str, url: str) -> StoreConflict:
    """The error of the slower of two writers."""
    return StoreConflict(
        f"another writer changed dataset {dataset!r} in {url} at the same time; nothing of this change is used. "
        "Run it again"
    )


class Snapshots:
    """The manifests below one store's directory.

    Parameters
    ----------
    files
        Where they are.
    url
        For messages.
    grace
        Seconds that files of an earlier snapshot stay for readers still on it.
    """

    def __init__(self, files: Files, url: str, grace: float) -> None:
        self.files = files
        self.url = url
        self._grace = int(grace * 1000)

    def where(self, path: str) -> str:
        return f"{self.url}/{path}"

    def datasets(self) -> list[str]:
        """Ids of all datasets that have, or had, a snapshot."""
        with store_errors(f"listing the store {self.url}"):
            return [name for name in self.files.list("") if _DATASET.fullmatch(name)]

    def numbers(self, dataset: str) -> list[int]:
        """The snapshots there are, in order."""
        if not _DATASET.fullmatch(dataset):
            raise StoreError(f"dataset id {dataset!r} is not made of 1 to 80 of [a-z0-9_-]")
        with store_errors(f"listing {self.where(manifests_directory(dataset))}"):
            names = self.files.list(manifests_directory(dataset))
        return sorted(number for name in names if (number := manifest_number(name)) is not None)

    def latest(self, dataset: str) -> Manifest | None:
        """The snapshot in use; None where nothing was ever published.

        Raises
        ------
        StoreFormatError, StoreError
        """
        for attempt in (1, 2):
            numbers = self.numbers(dataset)
            if not numbers:
                return None
            manifest = self.read(dataset, numbers[-1])
            if manifest is not None:
                return manifest
            if attempt == 2:
                break  # cleaned away between listing and reading, twice
        raise StoreError(f"the latest manifest of {dataset!r} in {self.url} is listed but not there")

    def read(self, dataset: str, number: int) -> Manifest | None:
        """One snapshot; None where it is not there."""
        path = manifest_path(dataset, number)
        with store_errors(f"reading {self.where(path)}"):
            try:
                data = self.files.read(path)
            except FileNotFoundError:
                return None
        manifest = Manifest.from_bytes(data, self.where(path))
        if manifest.number != number or (manifest.definition is not None and manifest.definition.id != dataset):
            raise StoreError(f"{self.where(path)} is damaged: it is the manifest of another snapshot")
        return manifest

    def publish(self, dataset: str, manifest: Manifest, base: Manifest | None) -> Manifest:
        """Put a snapshot in use, as the one after ``base``.

        Returns
        -------
        Manifest
            As published: with what it retires.

        Raises
        ------
        StoreConflict
            Another writer took the number.
        """
        manifest = replace(manifest, retired=self._retired(manifest, base))
        path = manifest_path(dataset, manifest.number)
        with store_errors(f"publishing {self.where(path)}"):
            try:
                created = self.files.create_if_absent(path, manifest.to_bytes())
            except Exception:
                # Did it fail before or after the file was made? Only the file can tell.
                created = self._is_there(dataset, manifest)
                if not created:
                    raise
        if not created:
            raise conflict(dataset, self.url)
        return manifest

    def _is_there(self, dataset: str, manifest: Manifest) -> bool:
        try:
            found = self.read(dataset, manifest.number)
        except Exception:
            return False
        return found is not None and found.token == manifest.token

    def _retired(self, manifest: Manifest, base: Manifest | None) -> tuple[Retired, ...]:
        if base is None or manifest.definition is None:
            return ()
        mine = {segment.file for segment in manifest.segments}
        last = Retired(
            base.number,
            manifest.published,
            tuple(segment.file for segment in base.segments if segment.file not in mine),
        )
        kept = [one for one in base.retired if manifest.published - one.since < self._grace]
        return (*kept, last)[-_MOST_RETIRED:]

    def clean(self, dataset: str, manifest: Manifest, now: int) -> None:
        """Delete what no reader needs: expired snapshots, and segments that were never published.

        A writer at work began from this snapshot or meets a conflict, and names its segments later than this snapshot's
        time: so what is older and in no snapshot belongs to nobody. A failure here costs space and nothing else.
        """
        try:
            waiting = [one for one in manifest.retired if now - one.since < self._grace]
            numbers = {manifest.number, *(one.number for one in waiting)}
            used = {segment.file for segment in manifest.segments} | {file for one in waiting for file in one.files}
            dropped = manifest.definition is None
            newest = manifest.published if dropped else min(manifest.published, now - self._grace)
            for number in self.numbers(dataset):
                if number < manifest.number and number not in numbers:
                    self.files.delete(manifest_path(dataset, number))
            for file in self.files.list(segments_directory(dataset)):
                made = segment_age(file)
                if file not in used and made is not None and made <= newest:
                    self.files.delete(segment_path(dataset, file))
        except Exception as error:
            _log.info("could not clean up %s: %s", self.where(dataset), error)
