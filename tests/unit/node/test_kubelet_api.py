"""The kubelet's HTTPS API: who may ask, and what logs look like."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.unit.node.agents import Node
from tests.unit.node.scripted_driver import until


def authority(folder: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    cert = certificate("test-ca", key, key, "test-ca", ca=True)
    (folder / "ca.crt").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    return key, cert


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, issuer: str, *, ca: bool = False
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )


def client_context(folder: Path, ca: ec.EllipticCurvePrivateKey, name: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    cert = certificate(name, key, ca, "test-ca")
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(cert.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(path)
    return context


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path, client_ca_file=tmp_path / "ca.crt")
    yield made
    made.close()


async def test_logs_are_served_to_the_api_server_alone(node: Node, tmp_path: Path) -> None:
    ca, _ = authority(tmp_path)
    allowed = client_context(tmp_path, ca, "kube-apiserver-kubelet-client")
    stranger = client_context(tmp_path, ca, "somebody")
    async with node.agent() as agent, aiohttp.ClientSession() as session:
        node.pod("p", "echo one; echo two; echo three; while [ ! -e go ]; do sleep 0.02; done; echo four; exit 1")
        await until(lambda: node.phase("p") == "Running")
        await until(lambda: "three" in "".join(p.read_text() for p in node.paths.log_dir.rglob("0.log")))
        root = f"https://127.0.0.1:{agent.port}"
        anyone = ssl.create_default_context()
        anyone.check_hostname = False
        anyone.verify_mode = ssl.CERT_NONE

        async def get(path: str, context: ssl.SSLContext = allowed) -> tuple[int, str]:
            async with session.get(root + path, ssl=context) as answer:
                return answer.status, await answer.text()

        logs = "/containerLogs/default/p/main"
        assert await get("/healthz", anyone) == (200, "ok")
        assert (await get(logs, anyone))[0] == 401
        assert (await get(logs, stranger))[0] == 403
        assert await get(logs) == (200, "one\ntwo\nthree\n")
        assert await get(logs + "?tailLines=1") == (200, "three\n")
        assert await get(logs + "?limitBytes=6") == (200, "one\ntw")
        assert await get(logs + "?sinceSeconds=3600&tailLines=2") == (200, "two\nthree\n")
        assert await get(logs + "?sinceTime=2999-01-01T00:00:00Z") == (200, "")
        status, text = await get(logs + "?timestamps=true&tailLines=1")
        assert text.endswith("Z three\n")
        assert text.startswith("20")
        assert await get(logs + "?tailLines=x") == (400, 'invalid value "x" for tailLines: it must be a number')
        assert (await get("/containerLogs/default/p/other"))[0] == 404
        status, text = await get(logs + "?previous=true")
        assert (status, text) == (400, 'previous terminated container "main" in pod "p" not found')
        assert (await get("/exec/default/p/main"))[0] == 501
        status, text = await get("/metrics")
        assert "kubelet_running_pods 1.0" in text
        async with session.get(root + logs + "?follow=true&tailLines=1", ssl=allowed) as answer:
            assert await answer.content.readline() == b"three\n"
            (work,) = node.paths.pods_dir.glob("*/containers/main/0/work")
            (work / "go").write_text("")
            assert await answer.content.read() == b"four\n"
        await until(lambda: node.status("p")["containerStatuses"][0]["restartCount"] >= 1)
        assert await get(logs + "?previous=true&tailLines=1") == (200, "four\n")
