"""A node with TLS and users: certificates are checked, and the documented privileges are enough."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from es_skipping.errors import StoreError, StoreUnavailable
from es_skipping.settings import Settings
from es_skipping.stores.elasticsearch.store import ElasticsearchStore
from tests.elasticsearch_node import Node, Security, start_node
from tests.stores.contract import (
    MINMAX,
    between,
    dataset_definition,
    minmax,
    object_id,
    object_metadata,
    skipped,
    write,
)

PASSWORD = "correct horse battery"
ROLES = """
es_skipping_reader:
  indices:
    - names: ["es-skipping-*"]
      privileges: ["read", "view_index_metadata"]
es_skipping_writer:
  indices:
    - names: ["es-skipping-*"]
      privileges: ["read", "view_index_metadata", "write", "create_index", "manage"]
nobody:
  cluster: []
"""
USERS = (
    ("reader", PASSWORD, ("es_skipping_reader",)),
    ("writer", PASSWORD, ("es_skipping_writer",)),
    ("stranger", PASSWORD, ("nobody",)),
)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def pem(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture(scope="module")
def secure(certificate: trustme.LeafCert, pem: Path) -> Iterator[Node]:
    chain = b"".join(one.bytes() for one in certificate.cert_chain_pems)
    node = start_node(
        security=Security(chain, certificate.private_key_pem.bytes(), pem, PASSWORD, ROLES, USERS),
    )
    yield node
    node.stop()


def store_as(node: Node, user: str | None, password: str = PASSWORD, **settings: str) -> ElasticsearchStore:
    conf = {"spark.es_skipping.store.timeout": "30s"}
    if user is not None:
        conf |= {"spark.es_skipping.store.user": user, "spark.es_skipping.store.password": password}
    conf |= {f"spark.es_skipping.store.{name}": value for name, value in settings.items()}
    return ElasticsearchStore(node.url, Settings(conf))


def test_users_certificates_and_least_privilege(
    secure: Node, certificate: trustme.LeafCert, pem: Path, tmp_path: Path
) -> None:
    trusting = {"caCerts": str(pem)}
    definition = dataset_definition(MINMAX)
    objects = [object_metadata(n, minmax=minmax(n, n)) for n in range(3)]

    # The writer may not install templates; once an administrator's first build has, it may do the rest.
    writer = store_as(secure, "writer", **trusting)
    with pytest.raises(StoreError, match="manage_index_templates"):
        write(writer, definition, objects)
    administrator = store_as(secure, "elastic", **trusting)
    write(administrator, dataset_definition(MINMAX, id="first"), objects)
    entry = write(writer, definition, objects)
    entry = write(writer, definition, [object_metadata(7, minmax=minmax(7, 7))], remove=[object_id(0)])
    write(writer, dataset_definition(MINMAX, id="other"), objects)
    write(writer, dataset_definition(MINMAX, id="other"), objects, fresh=True)
    writer.optimize("other")
    writer.drop("other")

    # The reader may look up, and nothing more.
    reader = store_as(secure, "reader", **trusting)
    expected = {object_id(n).key for n in (1, 7)}
    assert skipped(reader, entry, between(2, 2)) == expected
    assert {one.definition.id for one in reader.datasets()} == {"first", "events"}
    with pytest.raises(StoreError, match="may not do this"):
        write(reader, definition, objects)

    # The doctor tells who may do what.
    for store, state, words in (
        (administrator, "good", "may look up and build, and may install templates"),
        (writer, "good", "may look up and build, and may not (manage_index_templates) install templates"),
        (reader, "note", "reader may look up, not build: no write, create_index, manage"),
    ):
        told = {check.name: check for check in store.checks()}
        assert (told["privileges"].state, words in told["privileges"].found) == (state, True)
        assert told["mappings"].state == "good"

    # By fingerprint instead of an authority.
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())).hexdigest()
    assert skipped(store_as(secure, "reader", sslFingerprint=digest), entry, between(2, 2)) == expected
    with pytest.raises(StoreError):
        store_as(secure, "reader", sslFingerprint="0" * 64).datasets()

    # Who is not let in is told why, without the password.
    for store, words in (
        (store_as(secure, "reader", "wrong secret", **trusting), "credentials"),
        (store_as(secure, None, **trusting), "credentials"),
        (store_as(secure, "stranger", **trusting), "may not do this"),
    ):
        with pytest.raises(StoreError, match=words) as raised:
            store.lookup(entry, between(2, 2))
        assert "wrong secret" not in str(raised.value) and PASSWORD not in str(raised.value)

    # A certificate that nobody vouches for is no connection.
    stranger = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(stranger))
    for untrusting in ({}, {"caCerts": str(stranger)}):
        with pytest.raises(StoreUnavailable, match=r"caCerts"):
            store_as(secure, "reader", **untrusting).dataset("events")
