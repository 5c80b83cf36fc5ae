"""A file whose documents somebody altered cannot be read, as if a disk failed: the look-up then keeps its objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from es_skipping.stores.elasticsearch.files import ElasticsearchFiles

WHOLE: dict[str, Any] = {"path": "d/f", "within": ["", "d"], "ordinal": 0, "parts": 1, "data": "cGxhbnRlZA=="}


def _files(document: dict[str, Any]) -> ElasticsearchFiles:
    """Files of a cluster that answers each request with one document."""
    reply = SimpleNamespace(body={"_source": document})
    cluster: Any = SimpleNamespace(
        url="http://test",
        names=SimpleNamespace(sealed="sealed"),
        reader=SimpleNamespace(get=lambda **_: reply),
        scan=lambda *_, **__: [{"_source": document}],
    )
    return ElasticsearchFiles(cluster)


def test_a_whole_document() -> None:
    assert _files(WHOLE).read("d/f") == b"planted"
    assert _files(WHOLE).list("d") == ["f"]


@pytest.mark.parametrize(
    "altered",
    [
        {"data": None},
        {"data": "not base64"},
        {"data": "é"},
        {"data": ["cGxhbnRlZA==", "cGxhbnRlZA=="]},
        {"parts": None},
        {"parts": "many"},
        {"parts": 1.5},
    ],
    ids=str,
)
def test_a_document_with_another_field(altered: dict[str, Any]) -> None:
    with pytest.raises(OSError, match="reading d/f of sealed: its document was altered"):
        _files(WHOLE | altered).read("d/f")


@pytest.mark.parametrize("name", ["data", "parts"])
def test_a_document_without_a_field(name: str) -> None:
    with pytest.raises(OSError, match="its document was altered"):
        _files({field: one for field, one in WHOLE.items() if field != name}).read("d/f")


@pytest.mark.parametrize("path", [None, 7, ["d/f", "d/g"]], ids=str)
def test_a_listing_without_paths(path: Any) -> None:
    with pytest.raises(OSError, match="listing d of sealed: a document was altered"):
        _files(WHOLE | {"path": path}).list("d")
    with pytest.raises(OSError, match="a document was altered"):
        _files({"parts": 1}).list("d")
