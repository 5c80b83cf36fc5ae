"""The Parquet store keeps the contract of every store, all answers exact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from es_skipping.stores.base import MetadataStore
from es_skipping.stores.parquet.files import LocalFiles
from es_skipping.stores.parquet.manifest import digest
from es_skipping.stores.parquet.store import ParquetStore
from tests.stores.contract import StoreContract
from tests.stores.contract.queries import Queries


class TestParquetStore(Queries, StoreContract):
    examples = 100

    @pytest.fixture
    def store(self, tmp_path: Path) -> MetadataStore:
        return ParquetStore(str(tmp_path / "store"))

    def reopen(self, store: MetadataStore) -> MetadataStore:
        return ParquetStore(store.url)

    def tamper_version(self, store: MetadataStore, dataset: str, version: int) -> None:
        files = LocalFiles(store.url)
        name = f"{dataset}/manifests/{files.list(f'{dataset}/manifests')[-1]}"
        data = json.loads(files.read(name).partition(b"\n")[0]) | {"format": version}
        line = json.dumps(data).encode()
        files.delete(name)
        files.write(name, line + b"\n" + digest(line).encode() + b"\n")
