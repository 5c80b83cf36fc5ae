"""Files in Elasticsearch, for the companions of sealed indexes: a document per part of a file.

The index is made when the first file is written, and every write is visible to the next listing.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, ConflictError, NotFoundError

from es_skipping.stores.elasticsearch.cluster import Cluster

__all__ = ["ElasticsearchFiles"]

_PART: Final = 8 << 20
"""Bytes of a file in one document."""

_MAPPINGS: Final[dict[str, Any]] = {
    "dynamic": "strict",
    "_meta": {"managed_by": "es_skipping"},
    "properties": {
        "path": {"type": "keyword"},
        "within": {"type": "keyword"},
        "ordinal": {"type": "integer"},
        "parts": {"type": "integer"},
        "data": {"type": "binary"},
    },
}


class ElasticsearchFiles:
    """`es_skipping.stores.files.Files` in one index of a cluster.

    Parameters
    ----------
    cluster
        The cluster.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._index = cluster.names.sealed
        self._made = False

    def __repr__(self) -> str:
        return f"ElasticsearchFiles({self._cluster.url!r}, {self._index!r})"

    def list(self, directory: str) -> list[str]:
        query = {"bool": {"filter": [{"term": {"within": directory}}, {"term": {"ordinal": 0}}]}}
        above = f"{directory}/" if directory else ""
        try:
            hits = list(self._cluster.scan(self._index, query, "path", fields=["path"]))
        except NotFoundError:
            return []
        except (ApiError, TransportError) as error:
            raise OSError(f"listing {directory} of {self._index}: {error}") from error
        try:
            return sorted({hit["_source"]["path"][len(above) :].partition("/")[0] for hit in hits})
        except (KeyError, TypeError, AttributeError):
            raise OSError(f"listing {directory} of {self._index}: a document was altered") from None

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        first = self._part(path, 0)
        try:
            parts = [first["data"], *(self._part(path, number)["data"] for number in range(1, first["parts"]))]
            data = b"".join(base64.b64decode(part, validate=True) for part in parts)
        except (KeyError, TypeError, ValueError):
            raise OSError(f"reading {path} of {self._index}: its document was altered") from None
        return data[offset : None if length is None else offset + length]

    def _part(self, path: str, number: int) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._cluster.reader.get(index=self._index, id=_id(path, number)).body["_source"]
        except NotFoundError:
            raise FileNotFoundError(path) from None
        except (ApiError, TransportError) as error:
            raise OSError(f"reading {path} of {self._index}: {error}") from error
        return found

    def write(self, path: str, data: bytes) -> None:
        if not self.create_if_absent(path, data):
            raise FileExistsError(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._make()
        parts = [data[start : start + _PART] for start in range(0, max(1, len(data)), _PART)]
        names = path.split("/")[:-1]
        common = {"path": path, "within": ["/".join(names[:depth]) for depth in range(len(names) + 1)]}
        # The first part makes the file: until it is there, the others belong to nothing.
        for number in (*range(1, len(parts)), 0):
            document = {
                **common,
                "ordinal": number,
                "parts": len(parts),
                "data": base64.b64encode(parts[number]).decode(),
            }
            try:
                self._cluster.builder.index(
                    index=self._index,
                    id=_id(path, number),
                    document=document,
                    op_type="create" if number == 0 else "index",
                    refresh=number == 0,
                )
            except ConflictError:
                return False
            except (ApiError, TransportError) as error:
                raise OSError(f"writing {path} to {self._index}: {error}") from error
        return True

    def delete(self, path: str) -> None:
        client = self._cluster.builder.options(ignore_status=404)
        try:
            found = client.get(index=self._index, id=_id(path, 0), source_includes=["parts"]).body
            for number in range(found["_source"]["parts"] if found.get("found") else 0):
                client.delete(index=self._index, id=_id(path, number), refresh=True)
        except (ApiError, TransportError) as error:
            raise OSError(f"deleting {path} of {self._index}: {error}") from error

    def _make(self) -> None:
        if self._made:
            return
        try:
            self._cluster.builder.indices.create(
                index=self._index,
                mappings=_MAPPINGS,
                settings={"number_of_shards": 1, "auto_expand_replicas": "0-1"},
            )
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise OSError(f"creating the index {self._index}: {error}") from error
        except (ApiError, TransportError) as error:
            raise OSError(f"creating the index {self._index}: {error}") from error
        self._made = True


def _id(path: str, part: int) -> str:
    return f"{hashlib.sha256(path.encode('utf-8')).hexdigest()}.{part}"
