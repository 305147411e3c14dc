"""The certificate authority of the cluster and the certificates it issues, made on first start.

Keys are P-256 (made in a millisecond). cryptography is imported only when something has to be issued or signed; a
restart with everything in place reads files alone.
"""

from __future__ import annotations

import hashlib
import importlib
import ipaddress
import logging
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kubedra.server.access.files import write_durably
from kubedra.server.access.users import MASTERS

log = logging.getLogger(__name__)

CA_YEARS, LEAF_YEARS = 10, 5


class Authority:
    """Certificates of one data folder, below `pki/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca_certificate = folder / "ca.crt"
        self._ca_key = folder / "ca.key"

    def pair(self, name: str) -> tuple[Path, Path]:
        """Paths of a certificate and its key."""
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def has(self, name: str) -> bool:
        """Whether certificate and key are there, can be read and belong together.

        Who dies between writing the two leaves one, and a damaged one is as good as none.
        """
        return _belong_together(*self.pair(name))

    def ensure(self, hosts: Sequence[str]) -> None:
        """Makes the authority, the server's certificate for `hosts` and the administrator's, where missing."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _belong_together(self.ca_certificate, self._ca_key):
            if self.ca_certificate.exists() or self._ca_key.exists():
                log.warning(
                    "%s: the certificate authority is damaged and made anew; kubeconfigs that were copied from this "
                    "data folder are no longer valid",
                    self.folder,
                )
            self._make_authority()
        self._drop_strangers()
        names = self.folder / "server.hosts"
        listed = "\n".join(hosts)
        if not names.exists() or names.read_bytes() != listed.encode() or not self.has("server"):
            self.issue("server", "kube-apiserver", (), hosts=hosts)
            write_durably(names, listed.encode())
        if not self.has("admin"):
            self.issue("admin", "system:admin", (MASTERS,))

    def _drop_strangers(self) -> None:
        """Remove certificates that another authority issued: nobody would trust them."""
        mark = self.folder / "issuer"
        mine = hashlib.sha256(self.ca_certificate.read_bytes()).hexdigest()
        if mark.exists() and mark.read_bytes() == mine.encode():
            return
        for path in self.folder.glob("*.crt"):
            if path != self.ca_certificate:
                path.unlink()
        write_durably(mark, mine.encode())

    def ensure_client(self, name: str, user: str, groups: Sequence[str]) -> tuple[Path, Path]:
        """The certificate of a part, made if it is missing."""
        if not self.has(name):
            self.issue(name, user, groups)
        return self.pair(name)

    def _make_authority(self) -> None:
        x509, hashes, serialization, ec = _modules()
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubedra-ca")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=365 * CA_YEARS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(x509, sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_durably(self._ca_key, _pem(serialization, key), secret=True)
        write_durably(self.ca_certificate, certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, user: str, groups: Sequence[str], hosts: Sequence[str] = ()) -> None:
        """Issues and stores a certificate: for a server if there are hosts, else for a client."""
        x509, hashes, serialization, ec = _modules()
        ca = x509.load_pem_x509_certificate(self.ca_certificate.read_bytes())
        ca_key = serialization.load_pem_private_key(self._ca_key.read_bytes(), None)
        key = ec.generate_private_key(ec.SECP256R1())
        oid = x509.NameOID
        attributes = [x509.NameAttribute(oid.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(oid.COMMON_NAME, user))
        now = datetime.now(UTC)
        usage = x509.ExtendedKeyUsageOID
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(attributes))
            .issuer_name(ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=365 * LEAF_YEARS))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(x509, sign=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([usage.SERVER_AUTH, usage.CLIENT_AUTH] if hosts else [usage.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()), critical=False)
        )
        if hosts:
            alternatives = x509.SubjectAlternativeName([_alternative(x509, host) for host in hosts])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(ca_key, hashes.SHA256())
        certificate_path, key_path = self.pair(name)
        write_durably(key_path, _pem(serialization, key), secret=True)
        write_durably(certificate_path, certificate.public_bytes(serialization.Encoding.PEM))


def _belong_together(certificate: Path, key: Path) -> bool:
    """Whether this is a certificate and its key. Raises PermissionError."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key)
    except PermissionError:
        raise
    except OSError:
        return False
    return True


def _alternative(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(x509: Any, *, sign: bool) -> Any:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not sign,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(serialization: Any, key: Any) -> bytes:
    encoded: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return encoded


def _modules() -> tuple[Any, Any, Any, Any]:
    x509 = importlib.import_module("cryptography.x509")
    primitives = "cryptography.hazmat.primitives"
    oid = importlib.import_module("cryptography.x509.oid")

    class Names:
        """x509 with the object identifiers beside it."""

        NameOID = oid.NameOID
        ExtendedKeyUsageOID = oid.ExtendedKeyUsageOID

        def __getattr__(self, name: str) -> Any:
            return getattr(x509, name)

    return (
        Names(),
        importlib.import_module(f"{primitives}.hashes"),
        importlib.import_module(f"{primitives}.serialization"),
        importlib.import_module(f"{primitives}.asymmetric.ec"),
    )
