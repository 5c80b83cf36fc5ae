"""The result of `es_skipping.files`: the files to open, and a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from es_skipping.reports.units import human_bytes

__all__ = ["FileList", "FilesReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReport:
    """What one call of `es_skipping.files` found; printing it says so in words.

    Parameters
    ----------
    path, where
        As given.
    objects_total, bytes_total
        Of the listing.
    objects_skipped, bytes_skipped
        Of the listed objects that are not in the list.
    dataset
        The id of the indexed dataset; None if the path is not indexed.
    reason
        Why no object was ruled out; None if one was.
    failed
        True if the store gave no answer, so that every file is in the list.
    refused
        ``(part of the filter, reason)`` of the parts that no engine-independent condition represents. They rule out
        nothing.
    indexes
        Ids of the indexes that the clause asks.
    clause
        The clause, for people.
    unusable
        ``(index id, reason)`` of the indexes that this read must not use.
    added
        ``(file, reason)`` of a file that was ruled out and is in the list all the same.
    store
        The store's URL, without secrets.
    seconds
        Time of the whole call, with the listing.
    """

    path: str
    where: str
    objects_total: int
    bytes_total: int
    objects_skipped: int = 0
    bytes_skipped: int = 0
    dataset: str | None = None
    reason: str | None = None
    failed: bool = False
    refused: tuple[tuple[str, str], ...] = ()
    indexes: tuple[str, ...] = ()
    clause: str = ""
    unusable: tuple[tuple[str, str], ...] = ()
    added: tuple[tuple[str, str], ...] = ()
    store: str | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        kept = self.objects_total - self.objects_skipped
        left, size = human_bytes(self.bytes_total - self.bytes_skipped), human_bytes(self.bytes_total)
        lines = [f"{kept:,} of {self.objects_total:,} files, {left} of {size}"]
        if self.reason is not None:
            lines.append(f"nothing ruled out: {self.reason}")
        lines += [f"not used: {part} ({reason})" for part, reason in self.refused]
        lines += [f"kept: {file} ({reason})" for file, reason in self.added]
        return "\n".join(lines)


class FileList(list[str]):
    """The files that a filter needs: a list of paths or URLs in their order, with a report.

    Parameters
    ----------
    files
        The paths or URLs.
    report
        What was found.

    Examples
    --------
    >>> found = FileList(["a.parquet"], FilesReport(path="/lake", where="x > 1", objects_total=1, bytes_total=1536))
    >>> print(found, found.report)
    ['a.parquet'] 1 of 1 files, 1.5 KiB of 1.5 KiB
    """

    def __init__(self, files: Iterable[str], report: FilesReport) -> None:
        super().__init__(files)
        self.report = report
