"""The errors of this package, under one root. An argument that no call accepts raises ``ValueError``.

::

    EsSkippingError
    ├── SettingError           a setting or a store URL that cannot be used
    ├── DatasetError           a dataset that cannot be listed, read or indexed as asked
    │   └── ColumnError        a column that is unknown, or of a kind that cannot be indexed
    ├── FilterError            the text of a filter that is not one condition
    ├── IndexDefinitionError   an index that is duplicate, missing, or has impossible parameters
    ├── ProtectionError        a protected index cannot be written here: its key or a library is missing
    └── StoreError             the metadata store refused, failed or answered something unusable
        ├── StoreUnavailable   it could not be reached in time; trying again may help
        ├── StoreConflict      another writer changed the same dataset; trying again may help
        └── StoreFormatError   it holds a format that this version does not read

With ``spark.es_skipping.strict`` set, a failed look-up fails the query. Spark then raises its own error, whose text
names ``io.esskipping.LookupFailed`` and the reason.
"""

from __future__ import annotations

__all__ = [
    "ColumnError",
    "DatasetError",
    "EsSkippingError",
    "FilterError",
    "IndexDefinitionError",
    "ProtectionError",
    "SettingError",
    "StoreConflict",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailable",
]


class EsSkippingError(Exception):
    """Root of every error of es_skipping."""


class SettingError(EsSkippingError, ValueError):
    """A setting or a store URL that cannot be used; the message names the key and the value."""


class DatasetError(EsSkippingError):
    """A dataset that cannot be listed, read or indexed as asked."""


class ColumnError(DatasetError, ValueError):
    """A column that does not exist, or that cannot carry the index asked for."""


class FilterError(EsSkippingError, ValueError):
    """The text of a filter that is not one condition; the message says where it fails."""


class IndexDefinitionError(EsSkippingError, ValueError):
    """An index that is there already, is not there, or has impossible parameters."""


class ProtectionError(EsSkippingError):
    """A protected index cannot be written here: its key, or a library, is missing or is another."""


class StoreError(EsSkippingError):
    """The metadata store refused, failed or answered something unusable."""


class StoreUnavailable(StoreError):
    """The metadata store could not be reached in time; trying again may help."""


class StoreConflict(StoreError):
    """Another writer changed the same dataset at the same time; this writer changed nothing."""


class StoreFormatError(StoreError):
    """The metadata was written in a format that this version does not read."""
