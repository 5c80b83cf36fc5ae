"""`compatible`: an index is used only by reads that see the values it was built from."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from es_skipping.catalog import DatasetDefinition, IndexDefinition
from es_skipping.lookup.built_with import RELEVANT_SETTINGS, compatible, dataset_facts, index_facts, reader_options
from es_skipping.lookup.request import ScanRequest
from es_skipping.predicates.tree import Call, Column, Literal
from es_skipping.predicates.types import parse_type

INT = parse_type("int")
STRING = parse_type("string")
TIMESTAMP = parse_type("timestamp")


def field(name: str, type: Any, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


SCHEMA = struct(
    field("x", "integer"), field("s", "string"), field("t", "timestamp"), field("n", struct(field("y", "integer")))
)
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "user.timezone": "UTC",
    "user.language": "en-US en-US",
    "java.time.zone": "2025b",
    "java.specification.version": "17",
    "spark.version": "4.0",
}


def built(
    format: str, *operands: Any, options: dict[str, str] | None = None, schema: Any = SCHEMA, settings: Any = SETTINGS
):  # type: ignore[no-untyped-def]
    facts = index_facts(format, operands, schema, settings)
    index = IndexDefinition("i", "MinMax", ("x",), "intervals", INT, built_with=facts)
    dataset = DatasetDefinition(
        "d",
        ("file:/d",),
        format,
        (index,),
        options=options or {},
        built_with=dataset_facts(format, options or {}, schema),
    )
    return dataset, index


def request(format: str, **changes: Any) -> ScanRequest:
    made: dict[str, Any] = {"data_schema": copy.deepcopy(SCHEMA), "settings": dict(SETTINGS), **changes}
    return ScanRequest("1", ("file:/d",), format, **made)


X, S, T, Y = Column(("x",), INT), Column(("s",), STRING), Column(("t",), TIMESTAMP), Column(("n", "y"), INT)


@pytest.mark.parametrize("format", ["parquet", "orc", "csv", "json", "text"])
@pytest.mark.parametrize("operand", [X, S, T, Y, Call("lower", (S,), STRING)])
def test_the_same_read_is_compatible(format: str, operand: Any) -> None:
    assert compatible(*built(format, operand), request(format)) is None


def test_formats_and_options() -> None:
    assert "it was built from csv files" in str(compatible(*built("csv", X), request("json")))
    with_na = built("csv", X, options={"nullValue": "NA"})
    assert "nullvalue" in str(compatible(*with_na, request("csv")))
    assert (
        compatible(*with_na, request("csv", options={"nullvalue": "NA", "path": "/x", "inferschema": "true"})) is None
    )
    assert compatible(*built("parquet", X), request("parquet", options={"serialization.format": "1"})) is None
    assert compatible(*built("parquet", X), request("parquet", options={"datetimerebasemode": "LEGACY"})) is not None


def test_another_type_or_column_default() -> None:
    for changed in (field("x", "string"), field("x", "integer", EXISTS_DEFAULT="5"), field("X", "integer")):
        schema = struct(changed, *SCHEMA["fields"][1:])
        assert compatible(*built("parquet", X), request("parquet", data_schema=schema)) is not None
    collated = field("s", "string", __COLLATIONS={"s": "spark.UTF8_LCASE"})
    schema = struct(SCHEMA["fields"][0], collated, *SCHEMA["fields"][2:])
    assert compatible(*built("parquet", S), request("parquet", data_schema=schema)) is not None
    assert compatible(*built("parquet", X), request("parquet", data_schema=schema)) is None


def test_what_does_not_matter() -> None:
    more = struct(field("new", "string"), field("x", "integer", False, comment="an x"), *SCHEMA["fields"][1:])
    assert compatible(*built("parquet", X), request("parquet", data_schema=more)) is None
    assert "another schema" in str(compatible(*built("csv", X), request("csv", data_schema=more)))
    nested = copy.deepcopy(SCHEMA)
    nested["fields"][3]["type"]["fields"].append(field("z", "string"))
    assert compatible(*built("parquet", Y), request("parquet", data_schema=nested)) is None


def tokyo(**more: str) -> dict[str, str]:
    return {**SETTINGS, "spark.sql.session.timeZone": "Asia/Tokyo", **more}


def test_time_zones() -> None:
    assert "timeZone" in str(compatible(*built("csv", T), request("csv", settings=tokyo())))
    assert compatible(*built("csv", X), request("csv", settings=tokyo())) is None
    assert compatible(*built("parquet", T), request("parquet", settings=tokyo())) is None  # an instant is stored
    converting = {"spark.sql.parquet.int96TimestampConversion": "true"}
    there = built("parquet", T, settings={**SETTINGS, **converting})
    assert compatible(*there, request("parquet", settings=tokyo(**converting))) is not None
    moved = {**SETTINGS, "user.timezone": "Asia/Tokyo"}
    assert "user.timezone" in str(compatible(*built("orc", T), request("orc", settings=moved)))
    assert compatible(*built("orc", X), request("orc", settings=moved)) is None


def test_the_jvm_zone_of_parquet_timestamps() -> None:
    """Files of Spark 2.4 hold local times of a zone they do not name, whatever the rebase modes say."""
    moved = {**SETTINGS, "user.timezone": "Asia/Tokyo"}
    assert "user.timezone" in str(compatible(*built("parquet", T), request("parquet", settings=moved)))
    assert compatible(*built("parquet", X), request("parquet", settings=moved)) is None
    day = Column(("d",), parse_type("date"))
    schema = struct(field("d", "date"))
    assert (
        compatible(*built("parquet", day, schema=schema), request("parquet", settings=moved, data_schema=schema))
        is None
    )


@pytest.mark.parametrize("type", ["array<timestamp>", "struct<a:int,b:map<string,timestamp>>"])
def test_times_within_other_types(type: str) -> None:
    schema = struct(field("a", type))
    operand = Call("f", (Column(("a",), parse_type(type)),), INT)
    for format, key in (("parquet", "spark.sql.parquet.int96RebaseModeInRead"), ("parquet", "user.timezone")):
        moved = request(format, data_schema=schema, settings={**SETTINGS, key: "LEGACY"})
        assert key in str(compatible(*built(format, operand, schema=schema), moved))


@pytest.mark.parametrize(
    "key", ["spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.legacy.timeParserPolicy"]
)
def test_settings_of_expressions(key: str) -> None:
    expression = Call("hour", (T, Literal(1, INT)), INT)
    assert key in str(
        compatible(*built("parquet", expression), request("parquet", settings={**SETTINGS, key: "other"}))
    )


@pytest.mark.parametrize("key", ["datetimeRebaseModeInRead", "int96RebaseModeInRead"])
def test_rebase_modes(key: str) -> None:
    settings = {**SETTINGS, f"spark.sql.parquet.{key}": "LEGACY"}
    assert key in str(compatible(*built("parquet", T), request("parquet", settings=settings)))
    assert compatible(*built("parquet", X), request("parquet", settings=settings)) is None


def test_an_unset_setting_is_its_default() -> None:
    explicit = {**SETTINGS, "spark.sql.caseSensitive": "FALSE", "spark.sql.parquet.binaryAsString": "false"}
    assert compatible(*built("parquet", S), request("parquet", settings=explicit)) is None
    sensitive = {**SETTINGS, "spark.sql.caseSensitive": "true"}
    assert "caseSensitive" in str(compatible(*built("parquet", S), request("parquet", settings=sensitive)))


def test_an_index_without_facts_is_not_used() -> None:
    dataset, _ = built("parquet", X)
    bare = IndexDefinition("i", "MinMax", ("x",), "intervals", INT)
    assert compatible(dataset, bare, request("parquet")) is not None


def test_a_fact_that_is_unknown_now_is_another() -> None:
    index = IndexDefinition("i", "MinMax", ("x",), "intervals", INT, built_with={"a.setting": "on"})
    assert "unknown value" in str(compatible(built("parquet", X)[0], index, request("parquet")))


def test_settings_are_asked_for() -> None:
    assert {"spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"} <= set(RELEVANT_SETTINGS)


def test_secrets_are_not_remembered() -> None:
    found = reader_options("parquet", {"fs.s3a.secret.key": "hunter2", "parquet.encryption.footer.key": "k"})
    assert "hunter2" not in str(found)
    assert found["fs.s3a.secret.key"].startswith("sha256:")


def test_orc_finds_columns_by_position_where_it_must() -> None:
    """Files of Hive name no columns, and readers can be told to go by position: then another order is another value."""
    turned = struct(*reversed(SCHEMA["fields"]))
    assert compatible(*built("orc", X), request("orc", data_schema=turned)) is not None
    assert compatible(*built("parquet", X), request("parquet", data_schema=turned)) is None


def test_archives_are_read_as_one_file_or_as_many() -> None:
    settings = {"spark.sql.files.archive.reader.enabled": "true"}
    assert compatible(*built("csv", X), request("csv", settings=settings)) is not None
