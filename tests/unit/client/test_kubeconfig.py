"""A kubeconfig that is none is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubedra.client.kubeconfig import KubeconfigError, load


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "clusters: 5",
        "clusters: [x]",
        "users: {a: b}",
        "contexts: [{name: a, context: [1]}]\ncurrent-context: a",
        "contexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a\n"
        "clusters: [{name: c, cluster: {certificate-authority-data: 5}}]",
        "contexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a\n"
        "clusters: [{name: c, cluster: {certificate-authority-data: ü}}]",
    ],
)
def test_odd_kubeconfigs(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=str(path)):
        load([path])
