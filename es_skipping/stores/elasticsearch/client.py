"""From settings to a client, and from its errors to this package's."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson
from elastic_transport import BaseNode, ConnectionTimeout, NodePool, SerializationError, TlsError, TransportError
from elastic_transport import ConnectionError as Unreachable
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    Elasticsearch,
)
from elasticsearch.serializer import JsonSerializer

from es_skipping.errors import EsSkippingError, SettingError, StoreError, StoreUnavailable
from es_skipping.stores.elasticsearch.product import CheckedTransport
from es_skipping.stores.urls import check_url

__all__ = ["BUILD_LIMIT", "BUSY", "LOOKUP_LIMIT", "OutOfTime", "connect", "credentials", "translated"]

BUSY: Final = frozenset({429, 502, 503, 504})
"""Replies that say "later", not "no"."""

_KEYS: Final = "spark.es_skipping.store."
BUILD_LIMIT: Final = f"{_KEYS}buildTimeout"
LOOKUP_LIMIT: Final = f"{_KEYS}timeout, or what is left of spark.es_skipping.query.budget"
"""The settings that say how long an operation may take."""
_SHARDS: Final = "maximum normal shards open"
_NO_ROOM: Final = (
    " A dataset is an index of one shard: drop what is not needed, add a data node, or raise the cluster setting "
    "cluster.max_shards_per_node"
)
_API_KEY: Final = re.compile(r"[^\s:]+:[^\s:]+|[A-Za-z0-9+/_-]+=*")
_ANSWERED_WITHOUT_TLS: Final = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|record layer failure")
"""OpenSSL's message for it before and since version 3.2."""
_FINGERPRINT: Final = re.compile(r"[0-9a-fA-F]{64}")


def connect(url: str, settings: Mapping[str, Any]) -> Elasticsearch:
    """A client for a store's URL. No request is sent yet.

    Parameters
    ----------
    url
        ``http(s)://host:port``.
    settings
        Parsed settings by name: ``store.user``, ``store.password``, ``store.token``, ``store.caCerts``,
        ``store.sslFingerprint``, ``store.timeout``.

    Raises
    ------
    SettingError
        A setting cannot be used, or two contradict each other. Secrets are never part of the message.
    """
    url = check_url(url)
    if "://" in url and not re.search(r":\d+(/|$)", url.partition("://")[2]):
        # The client wants a port; Elasticsearch is served at the scheme's own behind a proxy or in the cloud.
        scheme, _, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme}://{host}:{443 if scheme.lower() == 'https' else 80}{slash}{path}"
    options: dict[str, Any] = {
        **credentials(settings),
        "request_timeout": settings["store.timeout"],
        "max_retries": 0,
        "retry_on_timeout": False,
        "headers": {"user-agent": "es-skipping"},
        "serializers": {"application/json": _FastReader()},
        "node_pool_class": _OneNode,
        "transport_class": CheckedTransport,
    }
    if url.lower().startswith("https:"):
        options.update(_trust(settings))
    try:
        return Elasticsearch(url, **options, opaque_id="es_skipping")
    except (ValueError, TypeError, OSError) as error:
        raise SettingError(f"{_KEYS}url is {url!r}, which the Elasticsearch client refuses: {error}") from None


class _OneNode(NodePool):
    """There is no other node to prefer, and the caller gets the error: the client need not warn as well."""

    def mark_dead(self, node: BaseNode, _now: float | None = None) -> None:
        pass


class _FastReader(JsonSerializer):
    """Decodes answers of half a million ordinals in a fifth of the time; requests are written as before."""

    def loads(self, data: bytes) -> Any:
        # Before Python 3.12 the collector looks through what is being made again and again, which would take two thirds
        # of the time. No other Python code runs while orjson decodes.
        collecting = gc.isenabled()
        try:
            gc.disable()
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise SerializationError(f"Unable to deserialize as JSON: {data[:200]!r}", errors=(error,)) from error
        finally:
            if collecting:
                gc.enable()


def credentials(settings: Mapping[str, Any]) -> dict[str, Any]:
    """User and password, API key or bearer token, as the client's constructor takes them."""
    user, password, token = (settings[f"store.{name}"] for name in ("user", "password", "token"))
    if token:
        if user or password:
            raise SettingError(f"set {_KEYS}token, or {_KEYS}user and {_KEYS}password, not both")
        if token[:7].lower() == "bearer ":
            return {"bearer_auth": token[7:].strip()}
        if not _API_KEY.fullmatch(token):
            raise SettingError(f"{_KEYS}token is neither an API key (id:key, or its base64 form) nor 'Bearer ...'")
        return {"api_key": tuple(token.split(":", 1)) if ":" in token else token}
    if bool(user) != bool(password):
        missing = "password" if user else "user"
        raise SettingError(f"{_KEYS}{missing} is not set, but the other of user and password is")
    return {"basic_auth": (user, password)} if user else {}


def _trust(settings: Mapping[str, Any]) -> dict[str, Any]:
    authorities, fingerprint = settings["store.caCerts"], settings["store.sslFingerprint"]
    trust: dict[str, Any] = {}
    if authorities and fingerprint:
        raise SettingError(f"set {_KEYS}caCerts or {_KEYS}sslFingerprint, not both: the second replaces the first")
    if authorities:
        try:
            with open(authorities, encoding="ascii", errors="replace") as file:
                if "BEGIN CERTIFICATE" not in file.read():
                    raise SettingError(f"{_KEYS}caCerts is {authorities!r}, which holds no PEM certificate")
        except OSError as error:
            raise SettingError(f"{_KEYS}caCerts is {authorities!r}, which cannot be read: {error.strerror}") from None
        trust["ca_certs"] = authorities
    if fingerprint:
        digits = fingerprint.replace(":", "").strip()
        if not _FINGERPRINT.fullmatch(digits):
            raise SettingError(f"{_KEYS}sslFingerprint is {fingerprint!r}, expected the 64 hex digits of a SHA-256")
        trust["ssl_assert_fingerprint"] = digits
    return trust


class OutOfTime(StoreUnavailable):
    """The time of an operation is over; `translated` adds the operation, the server and the setting."""


@contextmanager
def translated(doing: str, url: str, limit: str = BUILD_LIMIT) -> Iterator[None]:
    """Turns the client's errors in the body into this package's, with the name of the operation.

    Parameters
    ----------
    doing
        The operation.
    url
        Of the server.
    limit
        The setting that says how long the operation may take.

    Raises
    ------
    StoreUnavailable
        No answer in time, or one that says "later".
    StoreError
        Anything else that went wrong.
    """
    try:
        yield
    except (OutOfTime, ConnectionTimeout) as error:
        what = error if isinstance(error, OutOfTime) else "did not answer in time"
        raise StoreUnavailable(f"{doing}: Elasticsearch at {url} {what} (the limit is {limit})") from None
    except EsSkippingError:
        raise
    except AuthenticationException:
        raise StoreError(
            f"{doing}: Elasticsearch at {url} does not accept the credentials (401): check {_KEYS}user and .password, "
            "or .token"
        ) from None
    except AuthorizationException as error:
        raise StoreError(
            f"{doing}: Elasticsearch at {url} knows the user, who may not do this (403): {_reason(error)}. The "
            "privileges that are needed are listed in docs/reference/elasticsearch.md"
        ) from None
    except ApiError as error:
        kind = StoreUnavailable if error.status_code in BUSY else StoreError
        raise kind(f"{doing}: Elasticsearch at {url} answered {error.status_code}: {_reason(error)}") from error
    except TlsError as error:
        if _ANSWERED_WITHOUT_TLS.search(str(error.message)):
            raise StoreUnavailable(
                f"{doing}: {url} says https, but the server answers without TLS: set {_KEYS}url to "
                f"http{url[len('https') :]}, or enable TLS on the server"
            ) from None
        raise StoreUnavailable(
            f"{doing}: no trusted connection to {url}: {error.message}. Set {_KEYS}caCerts or .sslFingerprint"
        ) from None
    except Unreachable as error:
        raise StoreUnavailable(f"{doing}: Elasticsearch at {url} cannot be reached: {error.message}") from None
    except (SerializationError, TransportError) as error:
        raise StoreError(f"{doing}: Elasticsearch at {url} answered something unreadable: {error.message}") from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise StoreError(f"{doing}: the answer of Elasticsearch at {url} has another shape: {error!r}") from error


def _reason(error: ApiError) -> str:
    """The server's reason in one line."""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        causes = body["error"].get("root_cause") or [body["error"]]
        reason = "; ".join(": ".join(_told(cause)) for cause in causes)[:500]
        return reason + _NO_ROOM if _SHARDS in reason else reason
    return str(error.message)[:500]


def _told(cause: Mapping[str, Any]) -> Iterator[str]:
    """The type and the text of a cause, and of what caused it; some have a place in the cluster as their text."""
    yield from (str(cause[name]) for name in ("type", "reason") if cause.get(name))
    if isinstance(cause.get("caused_by"), dict):
        yield from _told(cause["caused_by"])
