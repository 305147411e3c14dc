"""Fetches what a pod's environment and volumes refer to: ConfigMaps, Secrets, service account tokens."""

from __future__ import annotations

import asyncio

import msgspec

from kubedra.api import kinds
from kubedra.api.core_v1 import Pod
from kubedra.api.errors import ApiError
from kubedra.client.protocol import Client
from kubedra.client.requests import error_from
from kubedra.node.pods.environment import Sources, config_map_data, references, secret_data
from kubedra.node.pods.volumes import TokenRequest, VolumeError, token_requests


async def fetch_sources(client: Client, pod: Pod) -> Sources:
    """The ConfigMaps and Secrets that a pod names; raises ApiError when one can't be read."""
    maps, secrets = references(pod)
    namespace = pod.metadata.namespace

    async def config_map(name: str) -> dict[str, bytes] | None:
        try:
            found = await client.get(kinds.CONFIG_MAP, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return config_map_data(found.data, found.binary_data)

    async def secret(name: str) -> dict[str, bytes] | None:
        try:
            found = await client.get(kinds.SECRET, name, namespace)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return secret_data(found.data)

    if not maps and not secrets:
        return Sources()
    got_maps = await asyncio.gather(*(config_map(name) for name in sorted(maps)))
    got_secrets = await asyncio.gather(*(secret(name) for name in sorted(secrets)))
    return Sources(dict(zip(sorted(maps), got_maps, strict=True)), dict(zip(sorted(secrets), got_secrets, strict=True)))


async def fetch_tokens(client: Client, pod: Pod) -> dict[TokenRequest, str]:
    """The service account tokens that a pod's volumes want; raises VolumeError."""
    tokens = {}
    account = pod.spec.service_account_name or "default"
    path = kinds.SERVICE_ACCOUNT.path(pod.metadata.namespace, account, "token")
    for request in token_requests(pod):
        bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid}
        spec = {
            "audiences": [request.audience] if request.audience else [],
            "expirationSeconds": request.expiration_seconds,
            "boundObjectRef": bound,
        }
        tree = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        body = msgspec.json.encode(tree)
        answer = await client.request("POST", path, body=body, headers={"content-type": "application/json"})
        if answer.status >= 300:
            why = error_from(answer.status, answer.body).message
            text = f'MountVolume.SetUp failed for volume "{request.volume}" : failed to fetch token: {why}'
            raise VolumeError(text)
        tokens[request] = str(msgspec.json.decode(answer.body)["status"]["token"])
    return tokens
