"""The errors of this package, under one root; arguments that no call could take are ``ValueError`` as everywhere.

::

    EsSkippingError
    ├── SettingError           a setting or a store URL that cannot be used
    ├── DatasetError           a dataset that cannot be listed, read or indexed as asked
    │   └── ColumnError        a column that is unknown, or of a kind that cannot be indexed
    ├── IndexDefinitionError   an index that is duplicate, missing, or has impossible parameters
    └── StoreError             the metadata store refused, failed or answered something unusable
        ├── StoreUnavailable   it could not be reached in time; trying again may help
        ├── StoreConflict      another writer changed the same dataset; trying again may help
        └── StoreFormatError   it was written in a format this version does not read

A look-up that fails under ``spark.es_skipping.strict`` fails the query, so it is Spark's own error that is raised, with
``io.esskipping.LookupFailed`` and the reason in its text.
"""

from __future__ import annotations

__all__ = [
    "ColumnError",
    "DatasetError",
    "EsSkippingError",
    "IndexDefinitionError",
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


class IndexDefinitionError(EsSkippingError, ValueError):
    """An index that is there already, is not there, or has impossible parameters."""


class StoreError(EsSkippingError):
    """The metadata store refused, failed or answered something unusable."""


class StoreUnavailable(StoreError):
    """The metadata store could not be reached in time; trying again may help."""


class StoreConflict(StoreError):
    """Another writer changed the same dataset at the same time; nothing was changed by this one."""


class StoreFormatError(StoreError):
    """The metadata was written in a format that this version does not read."""
