"""Bearer tokens: the static ones of this data folder, and service account tokens (ES256 JWTs of our own key).

Upstream counterpart: pkg/serviceaccount (jwt.go, claims.go).
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from kubedra.server.access.files import write_durably
from kubedra.server.access.users import AUTHENTICATED, MASTERS, NODE_NAME_EXTRA, User
from kubedra.server.store import Key, Store

Tree = dict[str, Any]
ISSUER = "https://kubernetes.default.svc"
# The parts of a cluster, each with a token file of its own below `tokens/`.
PARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("system:admin", (MASTERS,)),
    "scheduler": ("system:kube-scheduler", ()),
    "controllers": ("system:kube-controller-manager", ()),
    "agents": ("kubedra:agents", ("kubedra:agents",)),
    "drivers": ("kubedra:drivers", ("kubedra:dra-drivers",)),
}


class StaticTokens:
    """Token files; made on first start, kept afterwards."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._users: dict[bytes, User] = {}

    def path(self, part: str) -> Path:
        """The token file of a part."""
        return self._folder / part

    def load(self, admin: str = "") -> None:
        """Reads the token files, makes those that are missing; `admin` replaces the administrator's."""
        for part, (name, groups) in PARTS.items():
            path = self.path(part)
            token = _read_token(path)
            if part == "admin" and admin and token != admin:
                token = admin
                write_durably(path, token.encode(), secret=True)
            if not token:
                token = secrets.token_urlsafe(32)
                write_durably(path, token.encode(), secret=True)
            self._users[_digest(token)] = User(name, (*groups, AUTHENTICATED))

    def authenticate(self, token: str) -> User | None:
        """The user of a token."""
        return self._users.get(_digest(token))


def _read_token(path: Path) -> str:
    """The token in a file; empty where there is none or where it is nothing that fits a header."""
    try:
        token = path.read_bytes().strip().decode("ascii")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
    return token if token.isprintable() and " " not in token else ""


def _digest(token: str) -> bytes:
    # Looking a digest up tells nothing about the token by its timing.
    return hashlib.sha256(token.encode()).digest()


class TokenSigner:
    """Signs and checks service account tokens."""

    def __init__(self, folder: Path, store: Store, issuer: str = ISSUER) -> None:
        self._path = folder / "sa.key"
        self._store = store
        self.issuer = issuer
        self._loaded: Any = None
        self._good: dict[str, tuple[float, Tree]] = {}

    def _key(self) -> Any:
        if self._loaded is None:
            ec = importlib.import_module("cryptography.hazmat.primitives.asymmetric.ec")
            serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
            with suppress(FileNotFoundError, ValueError, TypeError):
                self._loaded = serialization.load_pem_private_key(self._path.read_bytes(), None)
            if not isinstance(self._loaded, ec.EllipticCurvePrivateKey):
                # Missing or damaged: what it signed can't be checked any more in any case.
                made = ec.generate_private_key(ec.SECP256R1())
                pem = made.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
                write_durably(self._path, pem, secret=True)
                self._loaded = made
        return self._loaded

    def sign(
        self,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str],
        now: datetime,
        expires: datetime,
        bound: Mapping[str, Tree],
    ) -> str:
        """A token of a service account. `bound` are the claims about what it is bound to."""
        claims = {
            "aud": list(audiences),
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": self.issuer,
            "jti": secrets.token_hex(16),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **bound},
            "nbf": int(now.timestamp()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        head = _encode(msgspec.json.encode({"alg": "ES256", "typ": "JWT"}))
        signed = f"{head}.{_encode(msgspec.json.encode(claims))}"
        ec, hashes, utils = _signing()
        der = self._key().sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(der)
        return f"{signed}.{_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def authenticate(self, token: str, audiences: Sequence[str], now: datetime) -> User | None:
        """The user of a token that is ours, not over, and whose account and bound object still exist."""
        known = self._good.get(token)
        if known is None:
            claims = self._verified(token)
            if claims is None:
                return None
            if len(self._good) > 1000:
                self._good.clear()
            known = self._good[token] = (float(claims.get("exp", 0)), claims)
        expires, claims = known
        if expires <= now.timestamp():
            return None
        if not set(audiences or (self.issuer,)) & set(claims.get("aud") or ()):
            return None
        return self._user(claims)

    def _verified(self, token: str) -> Tree | None:
        try:
            head, body, signature = token.split(".")
            if msgspec.json.decode(_decode(head)).get("alg") != "ES256":
                return None
            raw = _decode(signature)
            ec, hashes, utils = _signing()
            der = utils.encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key().public_key().verify(der, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            claims: Tree = msgspec.json.decode(_decode(body))
        except (ValueError, AttributeError, msgspec.MsgspecError, _invalid_signature()):
            return None
        return claims if claims.get("iss") == self.issuer else None

    def _user(self, claims: Tree) -> User | None:
        private = claims.get("kubernetes.io") or {}
        namespace, account = private.get("namespace", ""), private.get("serviceaccount") or {}
        record = self._store.get(Key("serviceaccounts", namespace, account.get("name", "")))
        if record is None or record.shared_tree()["metadata"]["uid"] != account.get("uid"):
            return None
        extra: dict[str, tuple[str, ...]] = {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)}
        pod = private.get("pod")
        if pod:
            bound = self._store.get(Key("pods", namespace, pod["name"]))
            if bound is None or bound.shared_tree()["metadata"]["uid"] != pod["uid"]:
                return None
            extra["authentication.kubernetes.io/pod-name"] = (pod["name"],)
            extra["authentication.kubernetes.io/pod-uid"] = (pod["uid"],)
        node = private.get("node")
        if node:
            extra[NODE_NAME_EXTRA] = (node["name"],)
        return service_account(namespace, account["name"], account["uid"], extra)


def service_account(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """The user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid, extra or {})


def _signing() -> tuple[Any, Any, Any]:
    primitives = "cryptography.hazmat.primitives"
    return (
        importlib.import_module(f"{primitives}.asymmetric.ec"),
        importlib.import_module(f"{primitives}.hashes"),
        importlib.import_module(f"{primitives}.asymmetric.utils"),
    )


def _invalid_signature() -> type[Exception]:
    found: type[Exception] = importlib.import_module("cryptography.exceptions").InvalidSignature
    return found


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
