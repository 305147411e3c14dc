"""TokenRequest: tokens for service accounts, signed by the key of this cluster.

Upstream counterpart: pkg/registry/core/serviceaccount/storage (TokenREST).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kubedra.api import errors, kinds
from kubedra.api import fields as f
from kubedra.api.errors import ApiError, bad_request
from kubedra.base.clock import format_time
from kubedra.server.calls import Call
from kubedra.server.handler import Handler, no_method
from kubedra.server.requests import Response, json_response
from kubedra.server.store import Key
from kubedra.server.subresources.bodies import read_body

Tree = dict[str, Any]
_BINDABLE = {("v1", "Pod"): "pods", ("v1", "Secret"): "secrets", ("v1", "Node"): "nodes"}


def install(handler: Handler) -> None:
    """Registers token."""
    handler.subresources[("serviceaccounts", "token")] = request_token


async def request_token(call: Call) -> Response:
    """Signs a token for the service account."""
    if call.verb != "create":
        return no_method()
    call.check_options()
    body = read_body(call, "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest")
    record = call.state.store.get(call.key)
    if record is None:
        raise errors.not_found(call.served.kind, call.name)
    account = record.shared_tree()
    spec = body.get("spec") or {}
    seconds = spec.get("expirationSeconds", 3600)
    if seconds < 600 or seconds > 1 << 32:
        detail = (
            "may not specify a duration less than 10 minutes"
            if seconds < 600
            else "may not specify a duration larger than 2^32 seconds"
        )
        error = f.invalid("spec.expirationSeconds", seconds, detail)
        details = {
            "group": "authentication.k8s.io",
            "kind": "TokenRequest",
            "causes": [{"reason": error.type, "message": error.error_body(), "field": error.field}],
        }
        raise ApiError(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: {error}', details)
    signer = call.state.extras["tokens"]
    audiences = spec.get("audiences") or [signer.issuer]
    bound = _bound(call, spec.get("boundObjectRef"))
    now = call.state.clock.now()
    expires = now + timedelta(seconds=seconds)
    token = signer.sign(call.namespace, call.name, account["metadata"]["uid"], audiences, now, expires, bound)
    metadata = {
        "name": call.name,
        "namespace": call.namespace,
        "uid": account["metadata"]["uid"],
        "creationTimestamp": format_time(now),
    }
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": metadata,
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": format_time(expires)},
    }
    return json_response(answer, 201)


def _bound(call: Call, reference: Tree | None) -> dict[str, Tree]:
    """Claims about the object that the token is bound to."""
    if not reference:
        return {}
    kind, version, name = reference.get("kind", ""), reference.get("apiVersion", ""), reference.get("name", "")
    resource = _BINDABLE.get((version, kind))
    if resource is None:
        raise bad_request(f"cannot bind token to object of type /{version}, Kind={kind}")
    namespace = "" if resource == "nodes" else call.namespace
    record = call.state.store.get(Key(resource, namespace, name))
    if record is None:
        found = kinds.lookup("", "v1", kind)
        assert found is not None
        raise errors.not_found(found, name)
    tree = record.shared_tree()
    uid = tree["metadata"]["uid"]
    if reference.get("uid") and reference["uid"] != uid:
        found = kinds.lookup("", "v1", kind)
        assert found is not None
        raise errors.conflict(
            found, name, f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record"
        )
    bound = {kind.lower(): {"name": name, "uid": uid}}
    node_name = (tree.get("spec") or {}).get("nodeName") if kind == "Pod" else ""
    if node_name:
        node = call.state.store.get(Key("nodes", "", node_name))
        bound["node"] = {"name": node_name} | ({"uid": node.shared_tree()["metadata"]["uid"]} if node else {})
    return bound
