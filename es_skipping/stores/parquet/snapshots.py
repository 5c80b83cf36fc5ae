"""Finds, reads and publishes a store's manifests, and deletes files that no snapshot needs.

The highest number is in use. A slow writer may find its number free again, because others took it, continued and
cleaned it up. So after a writer takes a number, it checks again that the snapshot it began from was the latest.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from es_skipping.errors import EsSkippingError, StoreConflict, StoreError
from es_skipping.stores.files import Files
from es_skipping.stores.parquet.claims import ClaimedError, is_aside
from es_skipping.stores.parquet.manifest import (
    MAX_LINEAGE,
    REMEDY,
    Manifest,
    Retired,
    TornManifest,
    manifest_number,
    manifest_path,
    manifests_directory,
    segment_path,
    segments_directory,
)
from es_skipping.stores.parquet.segment import segment_age

__all__ = ["Snapshots", "UnclearConflict", "conflict", "store_errors"]

_log = logging.getLogger(__name__)
_DATASET: Final = re.compile(r"[a-z0-9_-]{1,80}")
_MAX_RETIRED_SNAPSHOTS: Final = 50
_UNFINISHED_SECONDS: Final = 1.0
"""Seconds for which an empty or cut-off manifest is left to its writer."""

_UNPUBLISHED_MS: Final = 24 * 3600 * 1000
"""Milliseconds before a segment that no snapshot names is deleted: its writer may still work."""


class UnclearConflict(StoreConflict):
    """A conflict after which the change may still be in use, so that its segments must stay."""


@contextlib.contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Turn the file system's errors into a `StoreError` that names the operation."""
    try:
        yield
    except EsSkippingError:
        raise
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreError(
                f"{what} is not permitted ({error}): grant access, or change spark.es_skipping.store.url"
            ) from error
        if error.errno in (errno.EDQUOT, errno.ENOSPC):
            raise StoreError(
                f"{what} failed for lack of space ({error}): delete files, raise the quota, or change "
                "spark.es_skipping.store.url"
            ) from error
        raise StoreError(f"{what} failed: {type(error).__name__}: {error}") from error
    except Exception as error:  # file systems raise different errors
        raise StoreError(f"{what} failed: {type(error).__name__}: {error}") from error


def conflict(dataset: str, url: str) -> StoreConflict:
    """The error of the slower of two writers."""
    return StoreConflict(
        f"another writer changed dataset {dataset!r} in {url} at the same time, so this change was discarded: run it "
        "again"
    )


class Snapshots:
    """The manifests below one store's directory.

    Parameters
    ----------
    files
        The store's files.
    url
        The store's URL in messages.
    grace
        Seconds for which files of an earlier snapshot stay for readers that still use it.
    """

    def __init__(self, files: Files, url: str, grace: float) -> None:
        self.files = files
        self.url = url
        self._grace = int(grace * 1000)
        self._told: set[str] = set()

    def where(self, path: str) -> str:
        return f"{self.url}/{path}"

    def datasets(self) -> list[str]:
        """Ids of all datasets that have or had a snapshot."""
        with store_errors(f"listing the store {self.url}"):
            return [name for name in self.files.list("") if _DATASET.fullmatch(name)]

    def numbers(self, dataset: str) -> list[int]:
        """The numbers of the existing snapshots, in order."""
        if not _DATASET.fullmatch(dataset):
            raise StoreError(f"dataset id {dataset!r} must consist of 1 to 80 characters of [a-z0-9_-]")
        with store_errors(f"listing {self.where(manifests_directory(dataset))}"):
            names = self.files.list(manifests_directory(dataset))
        return sorted(number for name in names if (number := manifest_number(name)) is not None)

    def latest(self, dataset: str) -> Manifest | None:
        """The snapshot in use; None if nothing was ever published.

        Raises
        ------
        StoreFormatError, StoreError
        """
        return self._listed(dataset)[1]

    def _listed(self, dataset: str) -> tuple[list[int], Manifest | None]:
        """The existing snapshots, and the one in use: the highest complete one.

        An empty or cut-off manifest was never published: its writer was stopped, or has not finished. Any other
        alteration is an error, because that snapshot was in use.
        """
        for _ in range(2):
            numbers = self.numbers(dataset)
            torn = None
            for number in reversed(numbers):
                try:
                    manifest = self.read(dataset, number)
                except TornManifest as error:
                    torn = error
                    self._tell(f"{error}. Queries use the snapshot before it, until the next change")
                    continue
                if manifest is not None:
                    return numbers, manifest
                break  # cleaned up between listing and reading
            else:
                if torn is None or numbers[0] == 1:
                    return numbers, None
                raise StoreError(f"{torn}, and there is no other manifest. {REMEDY}") from torn
        raise StoreError(f"the latest manifest of {dataset!r} in {self.url} is listed but does not exist")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            logging.getLogger("es_skipping").warning("%s", text)  # reported at the user's call

    def read(self, dataset: str, number: int) -> Manifest | None:
        """One snapshot; None if it does not exist."""
        path = manifest_path(dataset, number)
        with store_errors(f"reading {self.where(path)}"):
            try:
                data = self.files.read(path)
            except FileNotFoundError:
                return None
        manifest = Manifest.from_bytes(data, self.where(path))
        if manifest.number != number or (manifest.definition is not None and manifest.definition.id != dataset):
            raise StoreError(f"{self.where(path)} is damaged: it belongs to another snapshot")
        return manifest

    def is_latest(self, dataset: str, base: Manifest | None) -> bool:
        """Whether a snapshot is in use; pass None to test that nothing was ever published."""
        return self._numbers_if_latest(dataset, base) is not None

    def _numbers_if_latest(self, dataset: str, base: Manifest | None) -> list[int] | None:
        """The existing snapshots, as long as ``base`` is in use."""
        if base is not None and not base.token:  # damaged: only its number is known
            numbers = self.numbers(dataset)
            return numbers if numbers[-1:] == [base.number] else None
        numbers, latest = self._listed(dataset)
        return numbers if (latest and latest.snapshot) == (base and base.snapshot) else None

    def publish(self, dataset: str, manifest: Manifest, base: Manifest | None) -> Manifest:
        """Publish a snapshot as the successor of ``base``.

        Returns
        -------
        Manifest
            As published, with its number, the retired snapshots and the lineage.

        Raises
        ------
        StoreConflict
            Another writer published since ``base``, or deleted files that this snapshot needs.
        """
        number = self._next_number(dataset, base)
        self._check_segments(dataset, manifest, base)
        lineage = () if base is None else (*base.lineage, (base.number, base.token))[-MAX_LINEAGE:]
        manifest = replace(manifest, number=number, retired=self._retired(manifest, base), lineage=lineage)
        path = manifest_path(dataset, number)
        with store_errors(f"publishing {self.where(path)}"):
            created: bool | None
            try:
                created = self.files.create_if_absent(path, manifest.to_bytes())
            except ClaimedError as error:
                raise StoreConflict(f"{self.url}: {error}. This change was discarded") from error
            except Exception:
                # Only the files show whether it failed before or after the file was created.
                created = self._after_failure(dataset, manifest)
                if created is None:
                    raise
        if not created and self._is_anothers(dataset, manifest):
            raise conflict(dataset, self.url)
        self._confirm(dataset, manifest, base)
        return manifest

    def _next_number(self, dataset: str, base: Manifest | None) -> int:
        """The number after all existing ones, if ``base`` is in use.

        Higher numbers belong to empty or cut-off manifests. They are passed over, not deleted: a writer that still
        finishes one then finds that others went on.
        """
        last = 0 if base is None else base.number
        for waits in (True, False):
            numbers = self._numbers_if_latest(dataset, base)
            if numbers is None:
                raise conflict(dataset, self.url)
            highest = max([last, *numbers])
            if not waits or highest == last:
                break
            time.sleep(_UNFINISHED_SECONDS)
        return highest + 1

    def _check_segments(self, dataset: str, manifest: Manifest, base: Manifest | None) -> None:
        """Refuse to publish a snapshot with missing segments."""
        with store_errors(f"listing {self.where(segments_directory(dataset))}"):
            there = set(self.files.list(segments_directory(dataset))) if manifest.segments else set()
        missing = [segment.file for segment in manifest.segments if segment.file not in there]
        if not missing:
            return
        if not self.is_latest(dataset, base):
            raise conflict(dataset, self.url)
        gone = f"{self.where(segment_path(dataset, missing[0]))} and {len(missing) - 1} other files are gone"
        inherited = set() if base is None else {segment.file for segment in base.segments}
        if inherited.intersection(missing):
            raise StoreError(f"{gone}, but the snapshot in use needs them. {REMEDY}")
        raise StoreConflict(
            f"{gone}, which this change wrote: another program deleted them, so this change was discarded. Run it again"
        )

    def _confirm(self, dataset: str, manifest: Manifest, base: Manifest | None) -> None:
        """Check that the number just taken follows the snapshot in use.

        Raises
        ------
        StoreConflict
            Others are further on: the number was free because it had been cleaned up. No reader used it.
        UnclearConflict
            The outcome is unknown.
        """
        for _ in range(2):  # a listing takes time: base may disappear meanwhile, because a newer snapshot was published
            numbers, latest = self._listed(dataset)
            if latest is not None and latest.number > manifest.number:
                descends = latest.descends_from(manifest)
                if descends is None:
                    break
                if not descends:
                    self._withdraw(dataset, manifest)
                    raise conflict(dataset, self.url)
                return
            is_mine = latest is not None and latest.snapshot == manifest.snapshot
            if is_mine and (base is None or base.number in numbers):
                passed_over = [n for n in numbers if (0 if base is None else base.number) < n < manifest.number]
                if all(self._is_torn(dataset, number) for number in passed_over):
                    return
                self._withdraw(dataset, manifest)  # a passed-over writer has finished
                break
        else:  # somebody is deleting the store's files by hand
            self._withdraw(dataset, manifest)
        raise UnclearConflict(
            f"another writer changed dataset {dataset!r} in {self.url} at the same time, and this change may or may "
            "not be in use. Run it again"
        )

    def _withdraw(self, dataset: str, manifest: Manifest) -> None:
        """Delete our own manifest that is not in use; if that fails, a later writer cleans it up."""
        with contextlib.suppress(Exception):
            self.files.delete(manifest_path(dataset, manifest.number))

    def _is_torn(self, dataset: str, number: int) -> bool:
        """Whether a manifest is still empty or cut off, or gone."""
        try:
            return self.read(dataset, number) is None
        except TornManifest:
            return True

    def _is_anothers(self, dataset: str, manifest: Manifest) -> bool:
        """Whether a taken number belongs to another writer.

        A request that is repeated because its answer was lost finds its own file.
        """
        try:
            found = self.read(dataset, manifest.number)
        except TornManifest:
            return True
        return found is not None and found.token != manifest.token

    def _after_failure(self, dataset: str, manifest: Manifest) -> bool | None:
        """Whether a manifest exists although its creation failed; None if unknown."""
        try:
            found = self.read(dataset, manifest.number)
            if found is not None:
                return found.token == manifest.token
            latest = self.latest(dataset)
        except Exception:
            return None
        if latest is not None and latest.number > manifest.number and latest.descends_from(manifest) is False:
            return False
        return None

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
        return (*kept, last)[-_MAX_RETIRED_SNAPSHOTS:]

    def clean(self, dataset: str, manifest: Manifest, base: Manifest | None, now: int) -> None:
        """Delete files that neither readers nor writers need: expired snapshots, and segments of dead writers.

        Only the latest snapshot may clean up. A segment that only a later snapshot names is younger than this snapshot:
        its writer began from this snapshot or from a later one, or meets a conflict. So older unnamed segments are in
        use only by readers of retired snapshots, who have the grace time, and by writers that will meet a conflict, who
        have a day to reuse what they collected.

        A failure here only costs space.

        Parameters
        ----------
        base
            The previous snapshot, if ``manifest`` was just published.
        """
        try:
            numbers = self.numbers(dataset)
            if numbers[-1:] != [manifest.number]:
                return
            waiting = [one for one in manifest.retired if now - one.since < self._grace]
            kept = {manifest.number, *(one.number for one in waiting)}
            used = {segment.file for segment in manifest.segments} | {file for one in waiting for file in one.files}
            earlier = (*manifest.retired, *(() if base is None else base.retired))
            expired = {file for one in earlier for file in one.files}
            dropped = manifest.definition is None
            newest = manifest.published if dropped else min(manifest.published, now - max(self._grace, _UNPUBLISHED_MS))
            for number in numbers:
                if number not in kept:
                    self.files.delete(manifest_path(dataset, number))
            for name in self.files.list(manifests_directory(dataset)):
                # A writer that wants a taken number has lost, and no longer needs its temporary file.
                wanted = manifest_number(name[: len("000000000000.json")]) if is_aside(name) else None
                if wanted is not None and wanted <= manifest.number:
                    self.files.delete(f"{manifests_directory(dataset)}/{name}")
            for file in self.files.list(segments_directory(dataset)):
                made = segment_age(file)
                if file not in used and made is not None and (file in expired or made <= newest):
                    self.files.delete(segment_path(dataset, file))
        except Exception as error:
            _log.info("could not clean up %s: %s", self.where(dataset), error)
