"""Which settings can change a value that a reader or an expression makes, and how their values are compared.

Each group is a mapping of keys to Spark 4's defaults: a session that does not set a key, or whose Spark does not know
it, has the default. Keys that do not begin with ``spark.`` are Hadoop's: readers see those of the session and those of
the cluster's configuration alike.
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
_PARQUET: Final = {
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
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
    **_TEXT,  # which functions like `from_json` obey too
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.ansi.strictIndexOperator": "true",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.datetime.java8API.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # Of Python functions; of some the default is another one in each version.
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
"""The session settings that can change a value of some format or expression; a request carries them."""


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
    """The settings that can change what an index collects, as they are.

    Parameters
    ----------
    types
        Of the columns, as text.
    fields
        Facts of the columns.
    expression
        Whether anything is computed from them.
    zoned
        Whether times are, for which the rules of zones may have a say.
    user_function
        Whether a function of the user's is called.

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
    # the default of a column that a file lacks is SQL, which each read parses and evaluates anew
    expression = expression or any("EXISTS_DEFAULT" in field for field in fields)
    # by the text, since a column of an expression may be an array or a struct of them
    stamped = any("timestamp" in name for name in types)
    temporal = stamped or any("date" in name for name in types)
    if any("CHAR_VARCHAR" in field for field in fields):
        keys.update(_CHAR)
    if format == "parquet":
        keys.update(_PARQUET)
        if temporal:
            keys.update(_PARQUET_TEMPORAL)
            if stamped:
                # whatever the modes say, a file of Spark 2.4 is rebased, and from a zone that it does not name
                extra.append(_JVM_ZONE)
            if setting(_CONVERSION, settings) == "true":
                keys[_ZONE] = None
    elif format == "orc":
        keys.update(_ORC)
        if stamped:
            extra.append(_JVM_ZONE)  # a file holds wall-clock times, which the reader takes to be of its own zone
    elif format in TEXT_FORMATS:
        keys.update(_TEXT)
        if temporal:
            keys.update(_TEXT_TEMPORAL)
    if expression:
        keys.update(_EXPRESSION)
        extra += (_SPARK, _JAVA, _LANGUAGE)
    if user_function:
        extra.append(_JVM_ZONE)  # times reach it as Java's and Python's own, which are of the zone where they run
    if zoned or user_function or (stamped and (expression or format in ("orc", *TEXT_FORMATS))):
        extra.append(_ZONE_RULES)
    facts = {}
    for key in [*keys, *extra]:
        value = setting(key, settings)
        facts[key] = "unknown" if value is None else value  # which no read's value equals
    return facts


_JVM_ZONE: Final = "user.timezone"
_SPARK: Final = "spark.version"
_JAVA: Final = "java.specification.version"
"""Spark leaves classes and cases of characters and the texts of dates to Java's tables."""
_LANGUAGE: Final = "user.language"
"""By which `upper` and `lower` go."""
_ZONE_RULES: Final = "java.time.zone"
"""The version of the tables of time zones: governments change them, and updates of Java bring the changes."""
_AS_WRITTEN: Final = frozenset({_ZONE, _JVM_ZONE, _JAVA, _LANGUAGE, _ZONE_RULES, "spark.sql.columnNameOfCorruptRecord"})


def setting(key: str, settings: Mapping[str, str | None]) -> str | None:
    """A setting's value in the form in which it is compared; None where it is not known."""
    value = settings.get(key)
    if value is None:
        if key == _ZONE:  # a session without a zone has that of its JVM
            return settings.get(_JVM_ZONE)
        default = _DEFAULTS.get(key)
        return default if key in _AS_WRITTEN else _canonical(default)
    return value if key in _AS_WRITTEN else _canonical(value)


def _canonical(value: str | None) -> str | None:
    """Settings other than zones and names are booleans and enumerations, in any case and with spaces around them."""
    if value is None:
        return None
    value = value.strip()
    return value.lower() if value.lower() in ("true", "false") else value.upper()
