"""A first start that dies while it makes keys does not spoil the next one."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kubedra.server.access import certificates
from kubedra.server.access.certificates import Authority


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
