"""The settings that can change a value that a reader or an expression returns, and how to compare their values.

Each group maps keys to Spark 4's defaults. A session that does not set a key, or whose Spark does not know it, has the
default. Keys without the prefix ``spark.`` are Hadoop's, from the session or from the cluster's configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["RELEVANT_SETTINGS", "TEXT_FORMATS", "setting", "setting_facts"]

TEXT_FORMATS: Final = frozenset({"csv", "json", "text"})
_ZONE: Final = "spark.sql.session.timeZone"

_ALWAYS: Final = {"spark.sql.caseSensitive": "false"}
_CHAR: Final = {
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.legacy.noCharPaddingInPredicate": "false",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.readSideCharPadding": "true",
}
_FIELD_IDS: Final = "spark.sql.parquet.fieldId.read.enabled"
"""Delta turns it on in a session that reads a table. Spark finds a field without an id by its name all the same."""
_FIELD_ID: Final = "parquet.field.id"
_PARQUET: Final = {
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.parquet.binaryAsString": "false",
    _FIELD_IDS: "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.ignoreVariantAnnotation": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.reader.respectUnknownTypeAnnotation.enabled": "false",
}
_PARQUET_TEMPORAL: Final = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
}
_CONVERSION: Final = "spark.sql.parquet.int96TimestampConversion"
_ORC: Final = {
    "orc.force.positional.evolution": "false",
    "orc.proleptic.gregorian": "false",
    "orc.proleptic.gregorian.default": "false",
    "orc.schema.evolution.case.sensitive": "true",
    "orc.skip.corrupt.data": "false",
    "orc.tolerate.missing.schema": "true",
    "spark.sql.orc.impl": "native",
}
_TEXT: Final = {
    "io.compression.codecs": "",
    "mapreduce.input.linerecordreader.line.maxlength": "2147483647",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.legacy.codingErrorAction": "false",
    "spark.sql.legacy.csv.enableDateTimeParsingFallback": "",
    "spark.sql.legacy.javaCharsets": "false",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.legacy.json.enableDateTimeParsingFallback": "",
    "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": "false",
}
_TEXT_TEMPORAL: Final = {
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.files.supportSecondOffsetFormat": "true",
    _ZONE: None,
}
_EXPRESSION: Final = {
    **_CHAR,
    **_TEXT,  # functions like `from_json` obey these too
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.ansi.strictIndexOperator": "true",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.datetime.java8API.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # For Python functions. Some defaults differ between versions.
    "spark.sql.execution.pandas.convertToArrowArraySafely": "default",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "default",
    "spark.sql.execution.pandas.respectSessionTimeZone": "default",
    "spark.sql.execution.pandas.structHandlingMode": "default",
    "spark.sql.execution.pyspark.binaryAsBytes": "default",
    "spark.sql.execution.pythonUDF.arrow.enabled": "default",
    "spark.sql.execution.pythonUDF.arrow.legacy.fallbackOnUDT": "default",
    "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled": "default",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": "default",
    "spark.sql.execution.udf.unified.execution.enabled": "default",
    "spark.sql.experimental.optimizer.pyTranspilers": "default",
    "spark.sql.experimental.optimizer.transpilePyUDFs": "default",
    "spark.sql.fromJsonForceNullableSchema": "true",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.functionResolution.sessionOrder": "second",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.legacy.allowHashOnMapType": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.allowNullComparisonResultInArraySort": "false",
    "spark.sql.legacy.allowZeroIndexInFormatString": "false",
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.legacy.codingErrorAction": "false",
    "spark.sql.legacy.collationAwareHashFunctions": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.disableMapKeyNormalization": "false",
    "spark.sql.legacy.doLooseUpcast": "false",
    "spark.sql.legacy.elementAt.throwException": "false",
    "spark.sql.legacy.eltOutputAsString": "false",
    "spark.sql.legacy.emptyStringInJson": "false",
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
    "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled": "false",
    "spark.sql.legacy.fromDayTimeString.enabled": "false",
    "spark.sql.legacy.integerGroupingId": "false",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.javaCharsets": "false",
    "spark.sql.legacy.keepCommandOutputSchema": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.lpadRpadAlwaysReturnString": "false",
    "spark.sql.legacy.negativeIndexInArrayInsert": "false",
    "spark.sql.legacy.nullInEmptyListBehavior": "",
    "spark.sql.legacy.percentileDiscCalculation": "false",
    "spark.sql.legacy.raiseErrorWithoutErrorClass": "false",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.truncateForEmptyRegexSplit": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.useLegacyXMLParser": "default",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.mapZipWithUsesJavaCollections": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.variant.validateUnicodeInJsonParsing": "true",
    "spark.sql.xml.variant.respectInferSchema": "default",
    _ZONE: None,
}
_DEFAULTS: Final[dict[str, str | None]] = {
    **_ALWAYS, **_CHAR, **_PARQUET, **_PARQUET_TEMPORAL, **_ORC, **_TEXT, **_TEXT_TEMPORAL, **_EXPRESSION
}  # fmt: skip

RELEVANT_SETTINGS: Final[tuple[str, ...]] = tuple(sorted(_DEFAULTS))
"""The session settings that can change a value in some format or expression; every request carries them."""


def setting_facts(
    format: str,
    types: set[str],
    fields: Iterable[str],
    settings: Mapping[str, str | None],
    *,
    expression: bool,
    zoned: bool = False,
    user_function: bool = False,
) -> dict[str, str]:
    """The current values of the settings that can change what an index collects.

    Parameters
    ----------
    types
        The columns' types, as text.
    fields
        The columns' facts.
    expression
        Whether the index computes an expression of the columns.
    zoned
        Whether the expression involves timestamps, which may depend on time zone rules.
    user_function
        Whether the expression calls a user's function.

    Examples
    --------
    >>> "spark.sql.session.timeZone" in setting_facts("parquet", {"timestamp"}, (), {}, expression=False)
    False
    >>> field = '{"metadata":[{"EXISTS_DEFAULT":"5"}]}'
    >>> set(setting_facts("parquet", {"int"}, [field], {}, expression=False)) >= {"spark.sql.session.timeZone"}
    True
    """
    keys: dict[str, str | None] = dict(_ALWAYS)
    extra: list[str] = []
    fields = list(fields)
    # each read evaluates the SQL default of a column that a file lacks
    expression = expression or any("EXISTS_DEFAULT" in field for field in fields)
    # searched in the text, because a column of an expression may be an array or a struct of timestamps
    stamped = any("timestamp" in name for name in types)
    temporal = stamped or any("date" in name for name in types)
    if any("CHAR_VARCHAR" in field for field in fields):
        keys.update(_CHAR)
    if format in ("parquet", "delta"):
        keys.update(_PARQUET)
        if not any(_FIELD_ID in field for field in fields):
            del keys[_FIELD_IDS]
        if temporal:
            keys.update(_PARQUET_TEMPORAL)
            if stamped:
                # a file of Spark 2.4 is rebased in every mode, from a zone that it does not name
                extra.append(_JVM_ZONE)
            if setting(_CONVERSION, settings) == "true":
                keys[_ZONE] = None
    elif format == "orc":
        keys.update(_ORC)
        if stamped:
            extra.append(_JVM_ZONE)  # a file holds wall-clock times; the reader assumes its own zone
    elif format in TEXT_FORMATS:
        keys.update(_TEXT)
        if temporal:
            keys.update(_TEXT_TEMPORAL)
    if expression:
        keys.update(_EXPRESSION)
        extra += (_SPARK, _JAVA, _LANGUAGE)
    if user_function:
        extra.append(_JVM_ZONE)  # it receives Java's or Python's own times, in the zone of their process
    if zoned or user_function or (stamped and (expression or format in ("orc", *TEXT_FORMATS))):
        extra.append(_ZONE_RULES)
    facts = {}
    for key in [*keys, *extra]:
        value = setting(key, settings)
        facts[key] = "unknown" if value is None else value  # equal to no read's value
    return facts


_JVM_ZONE: Final = "user.timezone"
_SPARK: Final = "spark.version"
_JAVA: Final = "java.specification.version"
"""Character classes, case mapping and date formats come from Java's tables."""
_LANGUAGE: Final = "user.language"
"""`upper` and `lower` depend on it."""
_ZONE_RULES: Final = "java.time.zone"
"""The version of the time zone tables, which Java updates change."""
_AS_WRITTEN: Final = frozenset({_ZONE, _JVM_ZONE, _JAVA, _LANGUAGE, _ZONE_RULES, "spark.sql.columnNameOfCorruptRecord"})


def setting(key: str, settings: Mapping[str, str | None]) -> str | None:
    """A setting's value in the form for comparison; None if unknown."""
    value = settings.get(key)
    if value is None:
        if key == _ZONE:  # a session without a zone uses its JVM's
            return settings.get(_JVM_ZONE)
        default = _DEFAULTS.get(key)
        return default if key in _AS_WRITTEN else _canonical(default)
    return value if key in _AS_WRITTEN else _canonical(value)


def _canonical(value: str | None) -> str | None:
    """Normalise case and spaces: settings other than zones and names are booleans and enumerations."""
    if value is None:
        return None
    value = value.strip()
    return value.lower() if value.lower() in ("true", "false") else value.upper()
