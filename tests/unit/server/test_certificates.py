"""A first start that dies while it makes keys does not spoil the next one."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from kubedra.server.access import certificates
from kubedra.server.access.certificates import Authority
from kubedra.server.access.tokens import StaticTokens


class Died(Exception):
    pass


@pytest.mark.parametrize("writes", range(8))
def test_dying_between_any_two_files_can_be_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    left = iter(range(writes))
    write = certificates.write_durably

    def dying(path: Path, content: bytes, *, secret: bool = False) -> None:
        if next(left, None) is None:
            raise Died
        write(path, content, secret=secret)

    authority = Authority(tmp_path / "pki")

    def make() -> None:
        authority.ensure(["localhost"])
        authority.ensure_client("part", "user", ())

    monkeypatch.setattr(certificates, "write_durably", dying)
    with pytest.raises(Died):
        make()
    monkeypatch.setattr(certificates, "write_durably", write)
    make()
    for name in ("server", "admin", "part"):
        certificate, key = authority.pair(name)
        context = ssl.create_default_context(cafile=str(authority.ca_certificate))
        context.load_cert_chain(certificate, key)
        assert key.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "part.key"])
@pytest.mark.parametrize("content", [None, b"", b"\xff garbage"])
def test_damaged_keys_and_certificates_are_made_anew(tmp_path: Path, name: str, content: bytes | None) -> None:
    authority = Authority(tmp_path / "pki")
    for attempt in ("whole", "damaged"):
        authority.ensure(["localhost"])
        authority.ensure_client("part", "user", ())
        if attempt == "whole":
            path = tmp_path / "pki" / name
            path.unlink() if content is None else path.write_bytes(content)
    issuer = x509.load_pem_x509_certificate(authority.ca_certificate.read_bytes())
    for leaf in ("server", "admin", "part"):
        certificate, key = authority.pair(leaf)
        ssl.create_default_context(cafile=str(authority.ca_certificate)).load_cert_chain(certificate, key)
        x509.load_pem_x509_certificate(certificate.read_bytes()).verify_directly_issued_by(issuer)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"two\nlines", b"two words"])
def test_a_damaged_token_is_made_anew(tmp_path: Path, content: bytes) -> None:
    StaticTokens(tmp_path).load()
    (tmp_path / "drivers").write_bytes(content)
    tokens = StaticTokens(tmp_path)
    tokens.load()
    user = tokens.authenticate((tmp_path / "drivers").read_text())
    assert user is not None and user.name == "kubedra:drivers"
