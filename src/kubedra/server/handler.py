"""One request in, one response out: routing, authorization, verbs, representation. Both transports end here."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.api.lifecycle import deprecation_warning
from kubedra.server.access.users import Attributes
from kubedra.server.calls import Call
from kubedra.server.representation import represent_list, represent_object, shower, wanted
from kubedra.server.requests import Request, Response, error_response, json_response
from kubedra.server.routing import Target, resolve
from kubedra.server.serving import VIRTUAL, Served
from kubedra.server.state import ServerState
from kubedra.server.store import Record, StoreUnavailable
from kubedra.server.verbs import creating, deleting, patching, reading, updating, watching
from kubedra.server.verbs.storing import unavailable

log = logging.getLogger("kubedra.server")

# (plural.group, subresource) -> a function from the call to the response.
SubresourceHandler = Callable[[Call], Awaitable[Response]]
PathHandler = Callable[[Request], Awaitable[Response]]

_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCE = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}


class Handler:
    """Answers requests over a `ServerState`. `paths` serves what is not a resource (exact path, or prefix with /)."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.subresources: dict[tuple[str, str], SubresourceHandler] = {}
        self.virtual: dict[tuple[str, str], SubresourceHandler] = {}
        self.paths: dict[str, PathHandler] = {}
        # (verb, resource, code) -> requests, for /metrics.
        self.counts: Counter[tuple[str, str, int]] = Counter()

    async def handle(self, request: Request) -> Response:
        """Never raises but for cancellation."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return error_response(error)
        except StoreUnavailable as error:
            return error_response(unavailable(error))
        except RecursionError:
            return error_response(ApiError(400, "BadRequest", "the object is nested too deeply"))
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            return error_response(ApiError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _handle(self, request: Request) -> Response:
        target = resolve(self.state.catalogue, request.path)
        if target is None:
            return await self._path(request)
        verb = self._verb(request, target)
        self._authorize(request, target, verb)
        served = target.served
        if served is None or target.malformed:
            return no_resource()
        if not verb:
            return no_method()
        call = Call(self.state, request, served, verb, target.namespace, target.name, target.subresource)
        deprecation = deprecation_warning(served.kind, self.state.features.version)
        if deprecation:
            call.warnings.append(deprecation)
        try:
            response = await self._dispatch(call, target)
        except ApiError as error:
            # Warnings accompany refusals, too.
            response = error_response(error)
        self.counts[(verb, target.resource, response.status)] += 1
        if call.warnings:
            for text in dict.fromkeys(call.warnings):
                quoted = text.replace("\\", "\\\\").replace('"', '\\"')
                response.headers.append(("Warning", f'299 - "{quoted}"'))
        return response

    def reading_call(self, request: Request, kind: Kind[Any], verb: str, namespace: str, name: str) -> Call:
        """The call of a reader in this process: authorized like any other. Raises `ApiError`."""
        served = self.state.catalogue.find(kind.group, kind.version, kind.plural)
        if served is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        target = Target(kind.group, kind.version, served, kind.plural, namespace, name)
        self._authorize(request, target, verb)
        return Call(self.state, request, served, verb, namespace, name)

    async def write(
        self, request: Request, kind: Kind[Any], verb: str, namespace: str, name: str, subresource: str = ""
    ) -> tuple[Served, Record] | None:
        """A create, update or patch from this process; None where only the full path through `handle` will do.

        Raises `ApiError`.
        """
        served = self.state.catalogue.find(kind.group, kind.version, kind.plural)
        if served is None or served.kind.kind in VIRTUAL or subresource not in ("", "status"):
            return None
        if subresource and not served.has_status:
            return None
        target = Target(kind.group, kind.version, served, kind.plural, namespace, name, subresource)
        if (kind.namespaced and not namespace) or verb not in kind.verbs:
            return None
        self._authorize(request, target, verb)
        call = Call(self.state, request, served, verb, namespace, name, subresource)
        try:
            if verb == "create":
                record = await creating.create(call)
            elif verb == "update":
                record, _ = await updating.update(call)
            else:
                record, _ = await patching.patch(call)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        self.counts[(verb, kind.plural, 200)] += 1
        return served, record

    async def _path(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        handler = self.paths.get(path)
        if handler is None:
            for prefix, candidate in self.paths.items():
                if prefix.endswith("/*") and path.startswith(prefix[:-1]):
                    handler = candidate
                    break
        decision = self.state.authorizer.authorize(
            request.user, Attributes(verb=request.method.lower(), path=request.path)
        )
        if not decision.allowed:
            text = Attributes(verb=request.method.lower(), path=request.path).refusal(request.user, decision.reason)
            return _plain(403, "Forbidden", f"forbidden: {text}")
        if handler is None:
            return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
        return await handler(request)

    @staticmethod
    def _verb(request: Request, target: Target) -> str:
        method = request.method
        if target.subresource:
            return _SUBRESOURCE.get(method, "")
        if target.name:
            return _OBJECT.get(method, "")
        verb = _COLLECTION.get(method, "")
        if verb == "list" and request.query.get("watch", "false").lower() not in ("", "false", "0"):
            return "watch"
        if target.all_namespaces and verb in ("create", "deletecollection"):
            served = target.served
            return verb if served is not None and "list" not in served.kind.verbs else ""
        return verb

    def _authorize(self, request: Request, target: Target, verb: str) -> None:
        attributes = Attributes(
            verb or request.method.lower(),
            target.group,
            target.resource,
            target.subresource,
            target.namespace or (target.name if target.resource == "namespaces" and not target.group else ""),
            target.name,
            "",
            target.version,
            request.query.get("fieldSelector", ""),
        )
        decision = self.state.authorizer.authorize(request.user, attributes)
        if decision.allowed:
            return
        if target.resource == "namespaces":
            attributes = attributes._replace(namespace=target.namespace)
        qualified = f"{target.resource}.{target.group}" if target.group else target.resource
        subject = f'{qualified} "{target.name}"' if target.name else qualified
        details: dict[str, Any] = {"name": target.name} if target.name else {}
        if target.group:
            details["group"] = target.group
        details["kind"] = target.resource
        text = f"{subject} is forbidden: {attributes.refusal(request.user, decision.reason)}"
        raise ApiError(403, "Forbidden", text, details)

    async def _dispatch(self, call: Call, target: Target) -> Response:
        served, verb = call.served, call.verb
        if call.subresource:
            handler = self.subresources.get((served.storage, call.subresource))
            if handler is not None:
                return await handler(call)
            if call.subresource != "status" or not served.has_status or target.rest:
                return no_resource()
            if verb == "create":
                return no_method()
        elif verb not in served.kind.verbs:
            return no_method()
        virtual = self.virtual.get((served.kind.group, served.kind.plural))
        if virtual is not None:
            return await virtual(call)
        return await self._stored(call)

    async def _stored(self, call: Call) -> Response:
        verb = call.verb
        form = wanted(call)
        if verb == "get":
            return represent_object(call, reading.get(call), form)
        if verb == "list":
            return await represent_list(call, reading.listing(call), form)
        if verb == "watch":
            return watching.watch(call, shower(call, form))
        if verb == "create":
            return represent_object(call, await creating.create(call), form, 201)
        if verb == "update":
            record, created = await updating.update(call)
            return represent_object(call, record, form, 201 if created else 200)
        if verb == "patch":
            record, created = await patching.patch(call)
            return represent_object(call, record, form, 201 if created else 200)
        if verb == "delete":
            record, gone = await deleting.delete(call)
            if deleting.answers_with_object(call, gone):
                return represent_object(call, record, form)
            return json_response(deleting.status_of(call, record))
        return await deleting.delete_collection(call)


def no_resource() -> Response:
    """404 in upstream's words for a path of the API where nothing is."""
    return _plain(404, "NotFound", "the server could not find the requested resource")


def no_method() -> Response:
    """405."""
    return _plain(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _plain(code: int, reason: str, message: str) -> Response:
    tree = ApiError(code, reason, message).status()
    tree["details"] = {}
    return json_response(tree, code)
