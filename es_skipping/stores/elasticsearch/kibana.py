"""Kibana's saved objects: the shipped file, import and export."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any, Final

from es_skipping.errors import SettingError, StoreError, StoreUnavailable
from es_skipping.stores.elasticsearch.client import credentials
from es_skipping.stores.elasticsearch.templates import shipped
from es_skipping.stores.urls import check_url

__all__ = ["Kibana", "saved_objects"]

_FILE: Final = "es-skipping-kibana.ndjson"


def saved_objects() -> str:
    """The shipped data views, visualizations and dashboard, one JSON object a line.

    Examples
    --------
    >>> [json.loads(line)["id"] for line in saved_objects().splitlines()][:3]
    ['es-skipping-datasets', 'es-skipping-objects', 'es-skipping-queries']
    """
    return shipped(_FILE)


class Kibana:
    """One Kibana, by its HTTP interface.

    Parameters
    ----------
    url
        ``http(s)://host:port``, with a base path where it has one.
    settings
        Parsed settings by name; credentials and certificate authority are those of the store.
    space
        The space's id; the default one where left out.

    Raises
    ------
    SettingError
        The URL or a credential cannot be used.
    """

    def __init__(self, url: str, settings: Mapping[str, Any], space: str | None = None) -> None:
        self.url = check_url(url)
        if not self.url.lower().startswith(("http://", "https://")):
            raise SettingError(f"Kibana's URL is {url!r}, expected http(s)://host:port")
        self._base = self.url + (f"/s/{space}" if space else "")
        self._headers = {"kbn-xsrf": "es-skipping", **_authorization(settings)}
        self._seconds: float = settings["store.buildTimeout"]
        self._context = (
            ssl.create_default_context(cafile=settings["store.caCerts"])
            if self.url.lower().startswith("https:")
            else None
        )

    def put(self, objects: str) -> int:
        """Import saved objects, replacing those of the same ids; returns how many.

        Raises
        ------
        StoreError
            Kibana refused some of them, and why.
        """
        boundary = uuid.uuid4().hex
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="es-skipping.ndjson"\r\n'
            f"Content-Type: application/ndjson\r\n\r\n{objects}\r\n--{boundary}--\r\n"
        ).encode()
        reply = json.loads(
            self._post("/api/saved_objects/_import?overwrite=true", body, f"multipart/form-data; boundary={boundary}")
        )
        if not reply.get("success"):
            errors = "; ".join(f"{one.get('type')} {one.get('id')}: {_why(one)}" for one in reply.get("errors", ()))
            raise StoreError(f"Kibana at {self.url} did not import everything: {errors or reply}")
        return int(reply["successCount"])

    def get(self) -> str:
        """The shipped saved objects that are in this Kibana, in their present form."""
        wanted = [json.loads(line) for line in saved_objects().splitlines()]
        names = [{"type": one["type"], "id": one["id"]} for one in wanted]
        request = {"objects": names, "excludeExportDetails": True}
        return self._post("/api/saved_objects/_export", json.dumps(request).encode(), "application/json").decode()

    def _post(self, path: str, body: bytes, content_type: str) -> bytes:
        headers = {**self._headers, "Content-Type": content_type}
        request = urllib.request.Request(self._base + path, body, headers, method="POST")  # noqa: S310 - http(s) only
        try:
            with urllib.request.urlopen(request, timeout=self._seconds, context=self._context) as reply:  # noqa: S310
                data: bytes = reply.read()
                return data
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")[:500]
            raise StoreError(f"Kibana at {self.url} answered {error.code}: {said}") from None
        except OSError as error:
            raise StoreUnavailable(f"Kibana at {self.url} cannot be reached: {error}") from None


def _why(error: Mapping[str, Any]) -> str:
    told = error.get("error", {})
    return str(told.get("message") or told.get("reason") or told.get("type") or told)


def _authorization(settings: Mapping[str, Any]) -> dict[str, str]:
    given = credentials(settings)
    if "bearer_auth" in given:
        return {"Authorization": f"Bearer {given['bearer_auth']}"}
    if "api_key" in given:
        key = given["api_key"]
        text = base64.b64encode(":".join(key).encode()).decode() if isinstance(key, tuple) else key
        return {"Authorization": f"ApiKey {text}"}
    if "basic_auth" in given:
        return {"Authorization": "Basic " + base64.b64encode(":".join(given["basic_auth"]).encode()).decode()}
    return {}
