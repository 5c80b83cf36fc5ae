"""Built under one way of reading, read under another: whatever can change what the bytes mean must be noticed.

One table of reader options, one of settings. Each row is tried in both directions; what cannot change a value has a
table of its own, so that nothing is noticed which should not be.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import es_skipping as esk
from es_skipping.lookup.built_with import RELEVANT_SETTINGS, compatible
from es_skipping.predicates.tree import Call, Column
from es_skipping.predicates.types import parse_type
from tests.lookup.test_built_with import SETTINGS, built, field, request, struct
from tests.spark.skipping_on_off import age, reading

INT, STRING, TIMESTAMP, DATE = map(parse_type, ("int", "string", "timestamp", "date"))
SCHEMA = struct(
    field("s", "string"), field("t", "timestamp"), field("d", "date"), field("f", "string", **{"parquet.field.id": 7})
)
S, T, WITH_ID = Column(("s",), STRING), Column(("t",), TIMESTAMP), Column(("f",), STRING)

OPTIONS: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("csv", {}, {"header": "true"}),
    ("csv", {}, {"sep": ";"}),
    ("csv", {"sep": ";"}, {"delimiter": "|"}),
    ("csv", {"sep": ";"}, {"sep": ",", "delimiter": ";"}),  # where both are given, `sep` counts
    ("csv", {"sep": ";"}, {"delimiter": ";", "sep": ","}),
    ("csv", {}, {"encoding": "UTF-16"}),
    ("csv", {"encoding": "UTF-16"}, {"encoding": "UTF-8", "charset": "UTF-16"}),
    ("csv", {}, {"quote": "'"}),
    ("csv", {}, {"quote": ""}),
    ("csv", {}, {"escape": '"'}),
    ("csv", {}, {"charToEscapeQuoteEscaping": "x"}),
    ("csv", {}, {"comment": "#"}),
    ("csv", {}, {"nullValue": "NA"}),
    ("csv", {"nullValue": "TRUE"}, {"nullValue": "true"}),  # a text, however much it looks like a switch
    ("csv", {"emptyValue": "False"}, {"emptyValue": "false"}),
    ("csv", {"nanValue": "NaN"}, {"nanValue": "nan"}),
    ("csv", {}, {"positiveInf": "inf"}),
    ("csv", {}, {"negativeInf": "-inf"}),
    ("csv", {}, {"ignoreLeadingWhiteSpace": "true"}),
    ("csv", {}, {"ignoreTrailingWhiteSpace": "true"}),
    ("csv", {}, {"dateFormat": "dd/MM/yyyy"}),
    ("csv", {}, {"timestampFormat": "dd/MM/yyyy"}),
    ("csv", {}, {"timestampNTZFormat": "dd/MM/yyyy"}),
    ("csv", {}, {"timeZone": "Asia/Tokyo"}),
    ("csv", {}, {"locale": "de-DE"}),
    ("csv", {}, {"multiLine": "true"}),
    ("csv", {}, {"lineSep": "\r"}),
    ("csv", {}, {"mode": "DROPMALFORMED"}),
    ("csv", {}, {"columnNameOfCorruptRecord": "s"}),
    ("csv", {}, {"enforceSchema": "false"}),
    ("csv", {}, {"unescapedQuoteHandling": "BACK_TO_DELIMITER"}),
    ("csv", {}, {"maxCharsPerColumn": "10"}),
    ("csv", {}, {"maxColumns": "1"}),
    ("csv", {}, {"columnPruning": "false"}),
    ("csv", {}, {"enableDateTimeParsingFallback": "true"}),
    ("csv", {}, {"preferDate": "false"}),
    ("csv", {}, {"singleVariantColumn": "v"}),
    ("json", {}, {"primitivesAsString": "true"}),
    ("json", {}, {"prefersDecimal": "true"}),
    ("json", {}, {"allowComments": "true"}),
    ("json", {}, {"allowUnquotedFieldNames": "true"}),
    ("json", {}, {"allowSingleQuotes": "false"}),
    ("json", {}, {"allowNumericLeadingZeros": "true"}),
    ("json", {}, {"allowNonNumericNumbers": "false"}),
    ("json", {}, {"allowBackslashEscapingAnyCharacter": "true"}),
    ("json", {}, {"allowUnquotedControlChars": "true"}),
    ("json", {}, {"dropFieldIfAllNull": "true"}),
    ("json", {}, {"encoding": "UTF-16LE"}),
    ("json", {}, {"timestampFormat": "yyyy"}),
    ("json", {}, {"dateFormat": "yyyy"}),
    ("json", {}, {"timeZone": "Asia/Tokyo"}),
    ("json", {}, {"locale": "de-DE"}),
    ("json", {}, {"multiLine": "true"}),
    ("json", {}, {"lineSep": ";"}),
    ("json", {}, {"mode": "DROPMALFORMED"}),
    ("json", {}, {"columnNameOfCorruptRecord": "s"}),
    ("json", {}, {"enableDateTimeParsingFallback": "true"}),
    ("json", {}, {"useUnsafeRow": "true"}),
    ("text", {}, {"wholetext": "true"}),
    ("text", {}, {"lineSep": ";"}),
    ("text", {}, {"encoding": "UTF-16"}),
    ("parquet", {}, {"datetimeRebaseMode": "LEGACY"}),
    ("parquet", {}, {"int96RebaseMode": "LEGACY"}),
    ("parquet", {}, {"parquet.crypto.factory.class": "some.Factory"}),
    ("parquet", {}, {"readAs": "anything that nobody has heard of yet"}),
    ("orc", {}, {"orc.force.positional.evolution": "true"}),
    ("orc", {}, {"orc.skip.corrupt.data": "true"}),
]
"""Format, and two sets of options under which the same bytes can be other values."""

SAME: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("csv", {"header": "TRUE", "multiLine": "False"}, {"HEADER": "true"}),
    ("csv", {"sep": ";"}, {"delimiter": ";"}),
    ("csv", {"sep": ";"}, {"delimiter": ",", "sep": ";"}),
    ("csv", {"inferSchema": "true"}, {"samplingRatio": "0.1"}),
    ("csv", {"mode": "permissive"}, {}),
    ("json", {"charset": "UTF-16LE"}, {"encoding": "UTF-16LE"}),
    ("parquet", {"mergeSchema": "true", "path": "/a"}, {"basePath": "/", "pathGlobFilter": "*.parquet"}),
    ("orc", {"recursiveFileLookup": "true"}, {"ignoreMissingFiles": "true"}),
]

SETTINGS_OF: list[tuple[str, Any, str, str]] = [
    *(("parquet", S, key, value) for key, value in (
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.parquet.binaryAsString", "true"),
        ("spark.sql.parquet.fieldId.read.ignoreMissing", "true"),
        ("spark.sql.parquet.ignoreVariantAnnotation", "true"),
        ("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", "true"),
    )),
    *(("parquet", T, key, value) for key, value in (
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.int96RebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.int96TimestampConversion", "true"),
        ("spark.sql.parquet.int96AsTimestamp", "false"),
        ("spark.sql.legacy.parquet.nanosAsLong", "true"),
        ("spark.sql.parquet.inferTimestampNTZ.enabled", "false"),
        ("user.timezone", "Asia/Tokyo"),
    )),
    ("parquet", WITH_ID, "spark.sql.parquet.fieldId.read.enabled", "true"),
    *(("orc", S, key, value) for key, value in (
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.orc.impl", "hive"),
        ("orc.force.positional.evolution", "true"),
        ("orc.schema.evolution.case.sensitive", "false"),
        ("orc.tolerate.missing.schema", "false"),
        ("orc.skip.corrupt.data", "true"),
    )),
    *(("orc", T, key, value) for key, value in (
        ("user.timezone", "Asia/Tokyo"),
        ("orc.proleptic.gregorian", "true"),
        ("orc.proleptic.gregorian.default", "true"),
    )),
    *(("csv", S, key, value) for key, value in (
        ("spark.sql.csv.parser.columnPruning.enabled", "false"),
        ("spark.sql.columnNameOfCorruptRecord", "s"),
        ("spark.sql.legacy.javaCharsets", "true"),
        ("spark.sql.legacy.codingErrorAction", "true"),
        ("mapreduce.input.linerecordreader.line.maxlength", "10"),
        ("io.compression.codecs", "some.Codec"),
    )),
    *(("json", S, key, value) for key, value in (
        ("spark.sql.json.enablePartialResults", "false"),
        ("spark.sql.json.enableExactStringParsing", "false"),
        ("spark.sql.legacy.json.allowEmptyString.enabled", "true"),
    )),
    *((format, T, key, value) for format in ("csv", "json") for key, value in (
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.files.supportSecondOffsetFormat", "false"),
    )),
    *(("parquet", Call("f", (S,), STRING), key, value) for key, value in (
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.ansi.strictIndexOperator", "false"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.icu.caseMappings.enabled", "false"),
        ("spark.sql.mapKeyDedupPolicy", "LAST_WIN"),
        ("spark.sql.legacy.sizeOfNull", "false"),
        ("spark.sql.legacy.truncateForEmptyRegexSplit", "true"),
        ("spark.sql.legacy.disableMapKeyNormalization", "true"),
        ("spark.sql.jsonGenerator.ignoreNullFields", "false"),
        ("spark.sql.json.enablePartialResults", "false"),
        ("spark.sql.columnNameOfCorruptRecord", "s"),
        ("spark.sql.function.concatBinaryAsString", "true"),
        ("spark.sql.function.eltOutputAsString", "true"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
        ("spark.sql.variant.validateUnicodeInJsonParsing", "false"),
        ("spark.sql.variant.allowDuplicateKeys", "true"),
        ("spark.sql.execution.pythonUDF.arrow.enabled", "true"),
        ("spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled", "true"),
        ("spark.sql.execution.pandas.convertToArrowArraySafely", "true"),
        ("spark.sql.execution.pyspark.binaryAsBytes", "false"),
        ("spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype", "true"),
        ("spark.sql.experimental.optimizer.transpilePyUDFs", "true"),
        ("spark.sql.legacy.useLegacyXMLParser", "true"),
        ("spark.version", "3.9"),
        ("java.specification.version", "21"),
        ("user.language", "tr-TR tr-TR"),
    )),
    *((format, operand, "java.time.zone", "2022e") for format, operand in (
        ("csv", T), ("json", T), ("orc", T), ("parquet", Call("hour", (T,), INT)),
        ("parquet", Call("tounixtimestamp", (S,), INT)), ("parquet", Call("udf:f", (S,), STRING)),
    )),
    ("json", Call("udf:f", (S,), STRING), "user.timezone", "Asia/Tokyo"),
]  # fmt: skip
"""Format, what is indexed, and a setting that can change its values."""


@pytest.mark.parametrize(("format", "one", "other"), OPTIONS, ids=lambda value: str(value))
def test_options_that_change_what_the_bytes_mean(format: str, one: dict[str, str], other: dict[str, str]) -> None:
    for before, now in ((one, other), (other, one)):
        index = built(format, S, options=before, schema=SCHEMA)
        why = compatible(*index, request(format, options=now, data_schema=SCHEMA))
        assert why is not None and "options" in why


@pytest.mark.parametrize(("format", "one", "other"), SAME, ids=lambda value: str(value))
def test_options_that_say_the_same(format: str, one: dict[str, str], other: dict[str, str]) -> None:
    for before, now in ((one, other), (other, one)):
        index = built(format, S, options=before, schema=SCHEMA)
        assert compatible(*index, request(format, options=now, data_schema=SCHEMA)) is None


@pytest.mark.parametrize(("format", "operand", "key", "value"), SETTINGS_OF, ids=lambda value: str(value)[:60])
def test_settings_that_change_a_value(format: str, operand: Any, key: str, value: str) -> None:
    changed = {**SETTINGS, key: value}
    for before, now in ((SETTINGS, changed), (changed, SETTINGS)):
        index = built(format, operand, schema=SCHEMA, settings=before)
        assert key in str(compatible(*index, request(format, settings=now, data_schema=SCHEMA)))
        assert compatible(*index, request(format, settings=before, data_schema=SCHEMA)) is None
    assert key in RELEVANT_SETTINGS or not key.startswith(("spark.sql", "orc.", "mapreduce.", "io."))


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_ids_of_fields_are_read_only_where_a_field_has_one(format: str) -> None:
    """Delta turns the setting on for a whole session, also for the directories that it reads besides."""
    changed = {**SETTINGS, "spark.sql.parquet.fieldId.read.enabled": "true"}
    for before, now in ((SETTINGS, changed), (changed, SETTINGS)):
        index = built(format, S, schema=SCHEMA, settings=before)
        assert compatible(*index, request(format, settings=now, data_schema=SCHEMA)) is None


READERS = re.compile(
    r"spark\.sql\.(parquet|orc|json|csv|files|legacy\.(parquet|csv|json)|execution\.(pandas|pyspark|python|pythonUDF|arrow|udf))\."
)
NO_VALUE = {
    "spark.sql.json.filterPushdown.enabled", "spark.sql.csv.filterPushdown.enabled", "spark.sql.csv.parser.inputBufferSize",
    "spark.sql.json.useUnsafeRow",
    *(f"spark.sql.orc.{name}" for name in (
        "aggregatePushdown", "columnarReaderBatchSize", "columnarWriterBatchSize", "compression.codec", "filterPushdown",
        "enableNestedColumnVectorizedReader", "enableVectorizedReader", "mergeSchema",
    )),
    *(f"spark.sql.parquet.{name}" for name in (
        "aggregatePushdown", "columnarReaderBatchSize", "compression.codec", "enableNestedColumnVectorizedReader",
        "enableNullTypeVectorizedReader", "enableVectorizedReader", "fieldId.write.enabled", "filterPushdown", "filterPushdown.date",
        "filterPushdown.decimal", "filterPushdown.string.startsWith", "filterPushdown.stringPredicate", "filterPushdown.timestamp",
        "mergeSchema", "output.committer.class", "outputTimestampType", "pushdown.inFilterThreshold", "recordLevelFilter.enabled",
        "respectSummaryFiles", "writeLegacyFormat", "datetimeRebaseModeInWrite", "int96RebaseModeInWrite",
        "variant.annotateLogicalType.enabled", "enableDictionary", "int64AsTimestampMillis",
    )),
    # which objects there are, how they are split, and what becomes of those that cannot be read
    *(f"spark.sql.files.{name}" for name in (
        "ignoreCorruptFiles", "ignoredPathSegmentRegex", "ignoreInvalidPartitionPaths", "ignoreMissingFiles",
        "maxPartitionBytes", "maxPartitionNum",
        "maxRecordsPerFile", "minPartitionNum", "openCostInBytes",
    )),
    # how rows travel to Python functions and what becomes of those that fail, and how DataFrames are made of pandas' ones
    *(f"spark.sql.execution.arrow.{name}" for name in (
        "cache.prefetch.enabled", "compression.codec", "compression.zstd.level", "enabled", "fallback.enabled",
        "localRelationThreshold", "maxBytesPerBatch", "maxBytesPerOutputBatch", "maxRecordsPerBatch",
        "maxRecordsPerOutputBatch", "pyspark.enabled", "pyspark.fallback.enabled", "pyspark.selfDestruct.enabled",
        "pyspark.validateSchema.enabled", "pythonUDF.columnarInput.enabled", "sparkr.enabled", "useLargeVarTypes",
        "transformWithStateInPandas.maxRecordsPerBatch", "transformWithStateInPySpark.maxStateRecordsPerBatch",
    )),
    *(f"spark.sql.execution.{name}" for name in (
        "pandas.udf.buffer.size", "python.udf.buffer.size", "python.udf.maxBytesPerBatch",
        "python.udf.maxRecordsPerBatch", "pyspark.python", "pythonUDF.arrow.concurrency.level",
        "pythonUDF.mapInBatch.legacy.acceptAnyIterable.enabled",
    )),
    *(f"spark.sql.execution.pyspark.udf.{name}" for name in (
        "daemonKillWorkerOnFlushFailure", "faulthandler.enabled", "hideTraceback.enabled", "idleTimeoutSeconds",
        "killOnIdleTimeout", "simplifiedTraceback.enabled", "tracebackDumpIntervalSeconds", "tracebackWithLocals.enabled",
    )),
    # other spellings of settings that are asked for; Spark itself reads one by the other
    "spark.sql.legacy.parquet.datetimeRebaseModeInRead", "spark.sql.legacy.parquet.int96RebaseModeInRead",
    "spark.sql.legacy.parquet.datetimeRebaseModeInWrite", "spark.sql.legacy.parquet.int96RebaseModeInWrite",
}  # fmt: skip
"""Settings of the readers that make a read faster, or concern writing, and change no value."""


def test_every_setting_of_the_readers_is_known() -> None:
    """A new Spark may bring a setting that changes values: this fails until somebody has looked at it."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-catalyst_*.jar")
    found: set[str] = set()
    with zipfile.ZipFile(jar) as classes:
        for name in classes.namelist():
            if "/SQLConf" in name:
                texts = re.findall(rb"spark\.sql\.[A-Za-z0-9_.]+[A-Za-z0-9]", classes.read(name))
                found |= {text.decode() for text in texts}
    readers = {key for key in found if READERS.match(key)}
    assert len(readers) > 20
    assert sorted(readers - set(RELEVANT_SETTINGS) - NO_VALUE) == []


def test_orc_by_position(spark: SparkSession, tmp_path: Path) -> None:
    """A setting of Hadoop's, in the session: the same schema finds the columns by their place instead of their name."""
    path = str(tmp_path / "d")
    spark.range(0, 40, 1, 4).selectExpr("cast(id AS INT) AS a", "cast(1000 + id AS INT) AS b").write.orc(path)
    age(path)
    esk.Dataset(spark, path, format="orc", schema="b INT, a INT").create_indexes(esk.MinMax("a"), esk.MinMax("b"))

    def where(condition: str) -> int:
        return reading(spark, lambda session: session.read.schema("b INT, a INT").orc(path).where(condition))

    assert where("a = 7") == 1
    spark.conf.set("orc.force.positional.evolution", "true")
    assert where("b = 7") == 4
    assert where("a = 1007") == 4
    spark.conf.unset("orc.force.positional.evolution")
    assert where("b = 1007") == 1


def test_a_setting_by_its_old_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark still reads ``spark.sql.legacy.parquet.datetimeRebaseModeInRead``, and what we ask for follows it."""
    path = str(tmp_path / "d")
    spark.sql(
        "SELECT timestamp'1500-01-01 00:00:00' + make_interval(0, 0, 0, cast(id AS INT)) AS t FROM range(0, 40, 1, 4)"
    ).write.parquet(path)
    age(path)
    esk.Dataset(spark, path).create_indexes(esk.MinMax("t"))
    query = f"SELECT * FROM parquet.`{path}` WHERE t < timestamp'1500-01-03 00:00:00'"
    assert reading(spark, query) == 1
    spark.conf.set("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "LEGACY")
    assert reading(spark, query) == 4
    spark.conf.unset("spark.sql.legacy.parquet.datetimeRebaseModeInRead")


def test_case_mappings_of_another_library(spark: SparkSession, tmp_path: Path) -> None:
    """``upper`` and ``initcap`` by ICU or by the JVM: the same text of an expression, other values."""
    path = str(tmp_path / "d")
    letters = "element_at(array('ß', 'ǆ', 'ŉ', 'ﬁ'), cast(id AS INT) + 1) AS s"
    spark.range(0, 4, 1, 4).selectExpr(letters).write.parquet(path)
    age(path)
    esk.Dataset(spark, path).create_indexes(esk.ValueList("initcap(s)"), esk.ValueList("upper(s)"))
    spark.conf.set("spark.sql.icu.caseMappings.enabled", "false")
    for condition in (
        "initcap(s) IN ('ß', 'SS', 'Ss', 'ǅ', 'Ǆ', 'ʼN', 'FI', 'Fi', 'ﬁ')",
        "initcap(s) = 'ß'",
        "initcap(s) = 'Ss'",
    ):
        assert reading(spark, f"SELECT * FROM parquet.`{path}` WHERE {condition}") == 4
    assert reading(spark, f"SELECT * FROM parquet.`{path}` WHERE upper(s) = 'none of them'") == 4


def test_case_mappings_of_another_language(spark: SparkSession, tmp_path: Path) -> None:
    """In Turkish an i has another capital. A process has its language from its environment, and may change it."""
    path = str(tmp_path / "d")
    spark.range(0, 4, 1, 4).selectExpr(
        "element_at(array('iş', 'a', 'b', 'c'), cast(id AS INT) + 1) AS s"
    ).write.parquet(path)
    age(path)
    esk.Dataset(spark, path).create_indexes(esk.ValueList("upper(s)"), esk.ValueList("s"))
    jvm: Any = spark._jvm
    locale = jvm.java.util.Locale
    before = locale.getDefault()
    query = f"SELECT * FROM parquet.`{path}` WHERE "
    assert reading(spark, query + "upper(s) = 'IŞ'") == 1
    locale.setDefault(locale.forLanguageTag("tr-TR"))
    try:
        assert reading(spark, query + "upper(s) = 'İŞ'") == 4
        assert reading(spark, query + "s = 'iş'") == 1
    finally:
        locale.setDefault(before)


def test_a_view_of_another_session(spark: SparkSession, tmp_path: Path) -> None:
    """A global temporary view opens files as the session that made it, and parses and computes as the one that asks."""
    parquet, csv, name = str(tmp_path / "parquet"), str(tmp_path / "csv"), f"view_{tmp_path.name}"
    days = spark.range(0, 4, 1, 4).selectExpr("concat('2020-1-', id + 1) AS s")
    days.write.parquet(parquet)
    days.write.csv(csv)
    age(tmp_path)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    esk.Dataset(spark, parquet).create_indexes(esk.ValueList("to_date(s, 'yyyy-MM-dd')"), esk.ValueList("s"))
    how: dict[str, Any] = {"options": {"dateFormat": "yyyy-MM-dd"}, "schema": "s DATE"}
    esk.Dataset(spark, csv, format="csv", **how).create_indexes(esk.ValueList("s"))
    spark.read.parquet(parquet).createGlobalTempView(f"{name}_parquet")
    spark.read.csv(csv, schema="s DATE", dateFormat="yyyy-MM-dd").createGlobalTempView(f"{name}_csv")
    other = spark.newSession()
    other.conf.set("spark.es_skipping.store.url", spark.conf.get("spark.es_skipping.store.url"))
    other.conf.set("spark.sql.ansi.enabled", "false")
    computed = f"SELECT * FROM global_temp.{name}_parquet WHERE to_date(s, 'yyyy-MM-dd') = DATE'2020-01-02'"
    parsed = f"SELECT * FROM global_temp.{name}_csv WHERE s = DATE'2020-01-02'"
    try:
        for session in (spark, other):
            assert reading(session, computed) == reading(session, parsed) == 0
        other.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
        assert reading(other, computed) == reading(other, parsed) == 4
        assert reading(other, f"SELECT * FROM global_temp.{name}_parquet WHERE s = '2020-1-2'") == 1
    finally:
        esk.disable(other)
        for kind in ("parquet", "csv"):
            spark.catalog.dropGlobalTempView(f"{name}_{kind}")
