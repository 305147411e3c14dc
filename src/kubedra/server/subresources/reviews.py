"""Reviews: may this user do that, who am I, is this token good. Answered by the code that every request meets.

Upstream counterpart: pkg/registry/authorization and pkg/registry/authentication.
"""

from __future__ import annotations

from typing import Any

from kubedra.api import fields as f
from kubedra.api.errors import ApiError
from kubedra.server.access.users import Attributes, Decision, User
from kubedra.server.calls import Call
from kubedra.server.decoding.bodies import decode
from kubedra.server.handler import Handler, no_method
from kubedra.server.requests import Response, json_response

Tree = dict[str, Any]
AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def install(handler: Handler) -> None:
    """Registers the reviews."""
    handler.virtual[(AUTHORIZATION, "selfsubjectaccessreviews")] = self_access
    handler.virtual[(AUTHORIZATION, "subjectaccessreviews")] = access
    handler.virtual[(AUTHORIZATION, "localsubjectaccessreviews")] = access
    handler.virtual[(AUTHORIZATION, "selfsubjectrulesreviews")] = rules
    handler.virtual[(AUTHENTICATION, "selfsubjectreviews")] = self_review
    handler.virtual[(AUTHENTICATION, "tokenreviews")] = token_review
    handler.virtual[("", "componentstatuses")] = component_statuses


def _body(call: Call) -> Tree:
    content_type = call.request.headers.get("content-type", "")
    return decode(call.request.body, content_type, call.served.kind, call.field_validation, call.warnings)


def _invalid(group: str, errors: list[f.FieldError]) -> ApiError:
    details = {
        "group": group,
        "causes": [{"reason": e.type, "message": e.error_body(), "field": e.field} for e in errors],
    }
    texts = [str(error) for error in errors]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError(422, "Invalid", f'.{group} "" is invalid: {joined}', details)


def _answer(call: Call, body: Tree, decision: Decision) -> Response:
    kind = call.served.kind
    status: Tree = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    tree = {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": body.get("metadata") or {},
        "spec": body.get("spec") or {},
        "status": status,
    }
    return json_response(tree, 201)


def _attributes(spec: Tree) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    wanted = spec.get("resourceAttributes") or {}
    return Attributes(
        wanted.get("verb", ""),
        wanted.get("group", ""),
        wanted.get("resource", ""),
        wanted.get("subresource", ""),
        wanted.get("namespace", ""),
        wanted.get("name", ""),
        version=wanted.get("version", ""),
    )


def _check(call: Call, body: Tree) -> None:
    spec, found = body.get("spec") or {}, []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None and path is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(f.FieldError(f.INVALID, "spec.resourceAttributes", None, detail))
    elif resource is not None and path is not None:
        value = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        found.append(
            f.invalid("spec.nonResourceAttributes", value, "cannot be specified in combination with resourceAttributes")
        )
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if k not in ("managedFields", "namespace") and v}
    if metadata:
        found.append(f.invalid("metadata", metadata, "must be empty"))
    if call.served.kind.plural != "selfsubjectaccessreviews" and not spec.get("user") and not spec.get("groups"):
        found.append(f.invalid("spec.user", "", "at least one of user or group must be specified"))
    if call.served.kind.namespaced and resource is not None and resource.get("namespace", "") != call.namespace:
        found.append(
            f.invalid(
                "spec.resourceAttributes.namespace", resource.get("namespace", ""), "must match metadata.namespace"
            )
        )
    if found:
        raise _invalid(AUTHORIZATION, found)


async def self_access(call: Call) -> Response:
    """May I do this?"""
    if call.verb != "create":
        return no_method()
    body = _body(call)
    _check(call, body)
    return _answer(call, body, call.state.authorizer.authorize(call.request.user, _attributes(body["spec"])))


async def access(call: Call) -> Response:
    """May this user do this?"""
    if call.verb != "create":
        return no_method()
    body = _body(call)
    _check(call, body)
    spec = body["spec"]
    extra = {name: tuple(values) for name, values in (spec.get("extra") or {}).items()}
    user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
    return _answer(call, body, call.state.authorizer.authorize(user, _attributes(spec)))


async def rules(call: Call) -> Response:
    """Everything that I may do in a namespace."""
    if call.verb != "create":
        return no_method()
    body = _body(call)
    namespace = (body.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise ApiError(400, "BadRequest", "no namespace on request")
    resource_rules: list[Tree] = []
    path_rules: list[Tree] = []
    for rule in call.state.extras["rules_for"](call.request.user, namespace):
        if rule.get("nonResourceURLs"):
            path_rules.append({"verbs": rule.get("verbs") or [], "nonResourceURLs": rule["nonResourceURLs"]})
        if rule.get("resources"):
            kept = ("verbs", "apiGroups", "resources", "resourceNames")
            resource_rules.append({name: rule[name] for name in kept if rule.get(name)})
    kind = call.served.kind
    status = {"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": False}
    tree = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": {}, "status": status}
    return json_response(tree, 201)


def _user_info(user: User) -> Tree:
    info: Tree = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info


async def self_review(call: Call) -> Response:
    """Who am I?"""
    if call.verb != "create":
        return no_method()
    kind = call.served.kind
    tree = {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": {"creationTimestamp": call.state.now()},
        "status": {"userInfo": _user_info(call.request.user)},
    }
    return json_response(tree, 201)


async def token_review(call: Call) -> Response:
    """Whose token is this?"""
    if call.verb != "create":
        return no_method()
    body = _body(call)
    spec = body.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise ApiError(400, "BadRequest", "token is required for TokenReview in authentication")
    user = call.state.extras["authenticate"](token, tuple(spec.get("audiences") or ()))
    status: Tree = {"user": {}, "error": "invalid bearer token"}
    if user is not None:
        status = {"authenticated": True, "user": _user_info(user)}
        if spec.get("audiences"):
            status["audiences"] = spec["audiences"]
    kind = call.served.kind
    tree = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec, "status": status}
    return json_response(tree, 201)


async def component_statuses(call: Call) -> Response:
    """Upstream keeps this kind for old clients; nothing is in it here."""
    if call.verb != "list":
        return no_method()
    return json_response({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": []})
