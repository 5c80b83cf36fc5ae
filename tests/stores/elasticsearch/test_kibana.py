"""Kibana's saved objects: every field exists, every reference resolves; export and import against an HTTP double."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from es_skipping.cli import main
from es_skipping.stores.elasticsearch.kibana import saved_objects
from es_skipping.stores.elasticsearch.templates import load

OBJECTS: list[dict[str, Any]] = [json.loads(line) for line in saved_objects().splitlines()]
MAPPINGS = {"datasets": "datasets", "objects": "objects-mappings", "queries": "queries"}
NUMBERS = {"long", "integer", "double"}
WANTS = {
    "avg": NUMBERS,
    "sum": NUMBERS,
    "max": NUMBERS | {"date"},
    "percentiles": NUMBERS,
    "histogram": NUMBERS,
    "date_histogram": {"date"},
    "terms": {"keyword"},
}


def of(type: str) -> list[dict[str, Any]]:
    return [one for one in OBJECTS if one["type"] == type]


def fields(view: str) -> Mapping[str, Any]:
    """The mapping behind a data view."""
    name = view.removeprefix("es-skipping-")
    properties: Mapping[str, Any] = load(MAPPINGS[name])["template"]["mappings"]["properties"]
    return properties


def test_what_there_is() -> None:
    assert (len(of("index-pattern")), len(of("dashboard")), len(of("visualization"))) == (3, 1, 10)
    assert len({one["id"] for one in OBJECTS}) == len(OBJECTS)
    for one in OBJECTS:
        assert one["coreMigrationVersion"] == "8.8.0", "what Kibana 8.8 to 8.19 and 9 read"
        major, minor, _ = map(int, one["typeMigrationVersion"].split("."))
        assert (major, minor) <= (8, 9), "older ones are migrated, newer ones refused"
        assert "migrationVersion" not in one, "the key of Kibana before 8.8"


def test_data_views_are_of_aliases_that_exist_and_their_time_is_a_date() -> None:
    titles = {one["id"]: one["attributes"]["title"] for one in of("index-pattern")}
    assert titles == {
        "es-skipping-datasets": "es-skipping-datasets",
        "es-skipping-objects": "es-skipping-objects-*",
        "es-skipping-queries": "es-skipping-queries",
    }
    for one in of("index-pattern"):
        known = fields(one["id"])
        assert known[one["attributes"]["timeFieldName"]]["type"] == "date"
        assert json.loads(one["attributes"]["fieldFormatMap"]).keys() <= known.keys()
        assert json.loads(one["attributes"]["runtimeFieldMap"]) == {}


@pytest.mark.parametrize("one", of("visualization"), ids=lambda one: one["id"])
def test_every_field_exists_and_can_be_asked_so(one: dict[str, Any]) -> None:
    (reference,) = one["references"]
    known = fields(reference["id"])
    search = json.loads(one["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
    assert search["indexRefName"] == reference["name"]
    state = json.loads(one["attributes"]["visState"])
    ids = [each["id"] for each in state["aggs"]]
    assert len(set(ids)) == len(ids)
    for each in state["aggs"]:
        field = each["params"].get("field")
        assert (each["type"] == "count") is (field is None)
        if field is not None:
            assert known[field]["type"] in WANTS[each["type"]], f"{each['type']} of {field}"
            assert known[field].get("doc_values", True)
        assert each["params"].get("orderBy", ids[0]) in ids
    for word in search["query"]["query"].replace(":", " ").replace("<", " ").split():
        assert word in known or word in ("or", "not", "*") or word.replace(".", "").isdigit()


def test_the_dashboard_shows_them_all() -> None:
    (dashboard,) = of("dashboard")
    panels = json.loads(dashboard["attributes"]["panelsJSON"])
    names = {reference["name"]: reference["id"] for reference in dashboard["references"]}
    assert names.keys() == {f"{panel['panelIndex']}:{panel['panelRefName']}" for panel in panels}
    assert set(names.values()) == {one["id"] for one in of("visualization")}
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridData"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 48
        taken |= cells


# --- the way into and out of a Kibana -------------------------------------------------------------------------------


class Double(HTTPServer):
    """Answers as Kibana's saved objects API is documented to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.kept: dict[str, dict[str, Any]] = {}
        self.refuse: str | None = None
        self.status = 200


class _Handler(BaseHTTPRequestHandler):
    server: Double

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.server.status != 200 or "kbn-xsrf" not in self.headers:
            return self.reply(self.server.status if self.server.status != 200 else 400, b'{"message": "no"}')
        if self.path.partition("?")[0].endswith("/_import"):
            head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
            (part,) = message_from_bytes(head + body).get_payload()  # type: ignore[misc]
            assert part.get_param("name", header="content-disposition") == "file"  # type: ignore[union-attr]
            text = part.get_payload(decode=True).decode()  # type: ignore[union-attr]
            read = [json.loads(line) for line in text.strip().splitlines()]
            errors = [
                {"type": one["type"], "id": one["id"], "error": {"type": "missing_references"}}
                for one in read
                if one["id"] == self.server.refuse
            ]
            self.server.kept |= {one["id"]: one for one in read if one["id"] != self.server.refuse}
            done = {"success": not errors, "successCount": len(read) - len(errors), "errors": errors}
            return self.reply(200, json.dumps(done).encode())
        asked = json.loads(body)["objects"]
        lines = [json.dumps(self.server.kept[one["id"]]) for one in asked if one["id"] in self.server.kept]
        return self.reply(200, "\n".join(lines).encode())

    def reply(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def kibana() -> Iterator[Double]:
    server = Double()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


def test_import_and_export(kibana: Double, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = ["--conf", "spark.es_skipping.store.token=id:secret"]
    assert main(["kibana", "import", "--kibana", kibana.url, "--output", "json", *secret]) == 0
    assert json.loads(capsys.readouterr().out)["imported"] == len(OBJECTS)
    path, headers = kibana.seen[0]
    assert path == "/api/saved_objects/_import?overwrite=true"
    assert headers["authorization"] == "ApiKey aWQ6c2VjcmV0"
    kibana.kept["es-skipping"]["attributes"]["title"] = "ours"
    file = tmp_path / "objects.ndjson"
    assert main(["kibana", "export", str(file), "--kibana", kibana.url, "--space", "data"]) == 0
    assert kibana.seen[1][0] == "/s/data/api/saved_objects/_export"
    read = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {one["id"] for one in read} == {one["id"] for one in OBJECTS}
    assert main(["kibana", "import", str(file), "--kibana", kibana.url]) == 0
    assert kibana.kept["es-skipping"]["attributes"]["title"] == "ours"
    capsys.readouterr()
    assert main(["kibana", "export", "-"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == OBJECTS


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        (["spark.es_skipping.store.user=me", "spark.es_skipping.store.password=secret"], "Basic bWU6c2VjcmV0"),
        (["spark.es_skipping.store.token=aWQ6c2VjcmV0"], "ApiKey aWQ6c2VjcmV0"),
        (["spark.es_skipping.store.token=Bearer secret"], "Bearer secret"),
        ([], None),
    ],
)
def test_every_way_to_authenticate(kibana: Double, settings: list[str], header: str | None) -> None:
    assert main(["kibana", "import", "--kibana", kibana.url, *(f"--conf={one}" for one in settings)]) == 0
    assert kibana.seen[0][1].get("authorization") == header


def test_what_goes_wrong(kibana: Double, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kibana.refuse = "es-skipping-sizes"
    assert main(["kibana", "import", "--kibana", kibana.url]) == 1
    assert "visualization es-skipping-sizes: missing_references" in capsys.readouterr().err
    kibana.status = 403
    assert main(["kibana", "import", "--kibana", kibana.url, "--conf=spark.es_skipping.store.token=id:secret"]) == 1
    told = capsys.readouterr().err
    assert "answered 403" in told and "secret" not in told
    assert main(["kibana", "import", "--kibana", "http://127.0.0.1:1"]) == 1
    assert main(["kibana", "import", str(tmp_path / "none"), "--kibana", kibana.url]) == 1
    assert main(["kibana", "import", "--kibana", "/a/path"]) == 1
