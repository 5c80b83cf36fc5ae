"""What a format version looks like in each store, kept for ever: later versions must read it.

When `FORMAT_VERSION` is raised, run this with the code of the *old* version first, and commit what it writes::

    python -m tests.stores.samples.make http://localhost:9200
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from elasticsearch import Elasticsearch

from es_skipping.catalog import DatasetDefinition, IndexDefinition, ObjectId
from es_skipping.catalog import ObjectMetadata as Object
from es_skipping.clauses.metadata import Boxes, Intervals, Values
from es_skipping.predicates.types import parse_type
from es_skipping.settings import Settings
from es_skipping.stores.base import FORMAT_VERSION, MetadataStore
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from es_skipping.stores.parquet.store import ParquetStore

FOLDER = Path(__file__).parent
PREFIX = "es-skipping-sample"
FAILED = (("s3a://lake/events/bad.parquet", "no Parquet"),)

TYPES = {"n": "bigint", "ts": "timestamp", "name": "string", "price": "decimal(30,4)", "x": "double"}
INDEXES = (
    *(IndexDefinition(f"minmax({c})", "MinMax", (c,), "intervals", parse_type(t)) for c, t in TYPES.items()),
    IndexDefinition("valuelist(name)", "ValueList", ("name",), "values", parse_type("string")),
    IndexDefinition(
        "prefix(name,length=2)", "Prefix", ("name",), "values", parse_type("string"), parameters={"length": 2}
    ),
    IndexDefinition(
        "geobox(lat,lon,boxes=2)",
        "GeoBox",
        ("lat", "lon"),
        "boxes",
        parse_type("double"),
        operands=({"column": ["lat"], "type": "double"}, {"column": ["lon"], "type": "double"}),
        column_types=(parse_type("double"), parse_type("double")),
        parameters={"boxes": 2},
        built_with={"spark.sql.session.timeZone": "Europe/Zürich"},
    ),
)
DEFINITION = DatasetDefinition(
    "events-5a",
    ("s3a://lake/events",),
    "parquet",
    INDEXES,
    table="spark_catalog.db.events",
    options={"mergeschema": "true"},
    schema='{"type":"struct","fields":[]}',
    built_with={"partitionSchema": "[]"},
)


def objects() -> list[Object]:
    made = []
    for n in range(12):
        low, high = 10 * n - 50, 10 * n - 45
        metadata: dict[str, Any] = {
            "minmax(n)": Intervals(((low, high),), n),
            "minmax(ts)": Intervals(((1_700_000_000_000_000 + n, 1_700_000_000_000_000 + 2 * n),), None),
            "minmax(name)": Intervals(((f"a{n}", f"ü{n}" * (n + 1)),), 0),
            "minmax(price)": Intervals(((Decimal(low).scaleb(-4), Decimal(10) ** 20),), 0),
            "minmax(x)": Intervals(((float(low), float("inf")),) if n % 3 else (), 0, n),
            "valuelist(name)": Values(frozenset({f"a{n}", f"ü{n}", ""}), 1),
            "prefix(name,length=2)": Values(frozenset({f"a{n}"[:2], f"ü{n}"[:2]}), 1),
            "geobox(lat,lon,boxes=2)": Boxes((((n - 5.0, n + 0.5), (-10.0, n * 7.0)), ((50.0, 51.0), (7.0, 8.0)))),
        }
        if n % 4 == 3:
            del metadata["valuelist(name)"]
        id = ObjectId(f"s3a://lake/events/day={n}/part é-{n}.parquet", 1000 + n, 1_700_000_000_000 + n)
        made.append(Object(id, None if n == 7 else 100 * n, metadata))
    return made


def build(store: MetadataStore) -> None:
    """Built, then refreshed: one object changed, one removed."""
    with store.change(DEFINITION) as change:
        old = objects()[3]
        change.put([Object(ObjectId(old.id.path, 1, 1), 1, old.metadata), *objects()[:3], *objects()[4:]])
        change.put([Object(ObjectId("s3a://lake/events/gone.parquet", 1, 1), 1, old.metadata)])
        change.publish()
    with store.change(DEFINITION) as change:
        change.put([objects()[3]])
        change.remove([ObjectId("s3a://lake/events/gone.parquet", 1, 1)])
        change.publish(FAILED)


def dumped(client: Elasticsearch) -> Iterator[dict[str, Any]]:
    """Every index under the prefix, with its documents."""
    for index, facts in sorted(client.indices.get(index=f"{PREFIX}-*").body.items()):
        client.indices.refresh(index=index)
        hits = client.search(index=index, size=1000, query={"match_all": {}})["hits"]["hits"]
        yield {
            "index": index,
            "aliases": facts["aliases"],
            "mappings": facts["mappings"],
            "documents": [[hit["_id"], hit["_source"]] for hit in hits],
        }


def write_sample(folder: Path, url: str, build: Callable[[MetadataStore], None]) -> None:
    """What a build leaves in each store, into a folder of samples; the server holds nothing of it afterwards."""
    build(ParquetStore(str(folder / "parquet")))
    build(ElasticsearchStore(url, Settings({}), prefix=PREFIX))
    with Elasticsearch(url) as client:
        lines = [json.dumps(index, ensure_ascii=False) + "\n" for index in dumped(client)]
        client.indices.delete(index=[json.loads(line)["index"] for line in lines])
    (folder / "elasticsearch.ndjson").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_sample(FOLDER / f"format-{FORMAT_VERSION}", sys.argv[1], build)
