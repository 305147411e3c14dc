"""Kubeconfig files: where a cluster is and how to prove who one is.

Counterpart: client-go ``tools/clientcmd``, as far as reading goes: one file or a list of files, contexts, certificate
authorities, client certificates, tokens, token files, and ``exec`` plug-ins.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class KubeconfigError(Exception):
    """A kubeconfig that can't be used; the text says which file and what to do."""


@dataclass(frozen=True, slots=True)
class Connection:
    """All that a transport needs. ``server`` is the base URL; certificates are PEM bytes."""

    server: str
    context: str = ""
    namespace: str = ""
    ca: bytes | None = None
    insecure: bool = False
    server_name: str = ""
    client_certificate: bytes | None = None
    client_key: bytes | None = None
    token: str = ""
    token_file: str = ""

    def __repr__(self) -> str:
        return f"Connection({self.server}, context={self.context!r})"


def load(files: Sequence[Path], context: str = "") -> Connection:
    """Merge kubeconfig files as upstream does (the first to name a thing wins) and pick a context.

    Raises KubeconfigError.
    """
    merged: dict[str, dict[str, tuple[dict[str, Any], Path]]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for path in files:
        tree = _read(path)
        current = current or str(tree.get("current-context") or "")
        for section, entries in merged.items():
            for entry in _entries(tree, section, path):
                entries.setdefault(str(entry.get("name")), (entry.get(section[:-1]) or {}, path))
    chosen = context or current
    where = ", ".join(str(f) for f in files)
    if not chosen:
        raise KubeconfigError(f"{where}: no current-context is set; name one with --context")
    if chosen not in merged["contexts"]:
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise KubeconfigError(f"{where}: there is no context {chosen!r}; there are: {known}")
    entry, path = merged["contexts"][chosen]
    cluster_name = str(entry.get("cluster", ""))
    if cluster_name not in merged["clusters"]:
        raise KubeconfigError(f"{path}: context {chosen!r} names the cluster {cluster_name!r}, which is not there")
    cluster, cluster_path = merged["clusters"][cluster_name]
    user, user_path = merged["users"].get(str(entry.get("user", "")), ({}, path))
    exec_token, exec_certificate, exec_key = _exec(user.get("exec"), user_path)
    return Connection(
        server=str(cluster.get("server", "")).rstrip("/"),
        context=chosen,
        namespace=str(entry.get("namespace") or ""),
        ca=_pem(cluster, "certificate-authority", cluster_path),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=str(cluster.get("tls-server-name") or ""),
        client_certificate=exec_certificate or _pem(user, "client-certificate", user_path),
        client_key=exec_key or _pem(user, "client-key", user_path),
        token=exec_token or str(user.get("token") or ""),
        token_file=str(user_path.parent / user["tokenFile"]) if user.get("tokenFile") else "",
    )


def in_cluster() -> Connection | None:
    """The connection of a pod's service account, or None outside a cluster."""
    folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").exists():
        return None
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        context="in-cluster",
        namespace=(folder / "namespace").read_text().strip() if (folder / "namespace").exists() else "",
        ca=(folder / "ca.crt").read_bytes(),
        token_file=str(folder / "token"),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise KubeconfigError(f"{path}: there is no such kubeconfig file") from None
    except OSError as error:
        raise KubeconfigError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KubeconfigError(f"{path}: this is not text in UTF-8") from error
    try:
        tree = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise KubeconfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig (no mapping at the top)")
    return tree


def _entries(tree: dict[str, Any], section: str, path: Path) -> list[dict[str, Any]]:
    """The named things of a section."""
    entries = tree.get(section) or []
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and isinstance(e.get(section[:-1]) or {}, dict) for e in entries
    ):
        raise KubeconfigError(f"{path}: {section} must be a list of named {section}")
    return entries


def _pem(entry: dict[str, Any], name: str, path: Path) -> bytes | None:
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (ValueError, TypeError) as error:
            raise KubeconfigError(f"{path}: {name}-data is not base64: {error}") from error
    if entry.get(name):
        target = path.parent / str(entry[name])
        try:
            return target.read_bytes()
        except OSError as error:
            raise KubeconfigError(f"{path}: {name} {target} can't be read: {error.strerror}") from error
    return None


def _exec(plugin: dict[str, Any] | None, path: Path) -> tuple[str, bytes | None, bytes | None]:
    """Run a credential plug-in (client.authentication.k8s.io) and return its token or certificate."""
    if not plugin:
        return "", None, None
    command = [str(plugin.get("command", "")), *map(str, plugin.get("args") or ())]
    environment = os.environ | {str(e["name"]): str(e["value"]) for e in plugin.get("env") or ()}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(
        {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    )
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
        status = json.loads(done.stdout).get("status") or {} if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise KubeconfigError(f"{path}: credential plug-in {command[0]!r} failed: {error}") from error
    if status is None:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise KubeconfigError(f"{path}: credential plug-in {command[0]!r} ended with {done.returncode}: {text}")
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    return (
        str(status.get("token") or ""),
        certificate.encode() if certificate else None,
        key.encode() if key else None,
    )
