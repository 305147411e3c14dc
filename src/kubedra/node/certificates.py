"""The certificate of the agent's HTTPS API where the settings name none: self-signed, made once, kept."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubedra.wire.durable import write_durably

_YEARS = 10


def self_signed(folder: Path, node: str, address: str, now: datetime.datetime) -> tuple[Path, Path]:
    """Paths of certificate and key below ``folder``; makes them when they are not there."""
    cert_path, key_path = folder / "kubelet.crt", folder / "kubelet.key"
    if cert_path.exists() and key_path.exists():
        return cert_path, key_path
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{node}@kubedra"[-64:])])
    alternatives: list[x509.GeneralName] = [x509.DNSName(node)]
    try:
        alternatives.append(x509.IPAddress(ipaddress.ip_address(address)))
    except ValueError:
        alternatives.append(x509.DNSName(address))
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_durably(key_path, private, 0o600)
    write_durably(cert_path, cert.public_bytes(serialization.Encoding.PEM), 0o644)
    return cert_path, key_path
