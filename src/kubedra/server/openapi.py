"""OpenAPI v3, a document per group and version, generated from the schema table when it is first asked for.

kubectl reads it for `explain` and before `apply`: what matters to it are the schemas with their extensions, and that
PATCH operations carry `x-kubernetes-group-version-kind` and the parameter `fieldValidation`. Descriptions come from
the package kubernetes-validate where it is installed (extra `explain`); nothing else depends on it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

from kubedra.api import schema
from kubedra.server.handler import Handler
from kubedra.server.requests import Request, Response
from kubedra.server.serving import Served, encode

Tree = dict[str, Any]
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REF = "#/components/schemas/"
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_ALWAYS = ("DeleteOptions", "Status", "APIResourceList", "WatchEvent", "Patch")
_SCALARS: dict[str, Tree] = {
    "quantity": {"$ref": f"{_REF}io.k8s.apimachinery.pkg.api.resource.Quantity"},
    "intorstring": {"$ref": f"{_REF}io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
    "time": {"$ref": f"{_REF}{_META}.Time"},
    "microtime": {"$ref": f"{_REF}{_META}.MicroTime"},
}
_SHARED: dict[str, Tree] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    f"{_META}.Time": {"type": "string", "format": "date-time"},
    f"{_META}.MicroTime": {"type": "string", "format": "date-time"},
    f"{_META}.Patch": {"type": "object"},
}


class OpenApi:
    """Answers /openapi/v3 and the documents below."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._documents: dict[str, bytes] = {}
        handler.paths["/openapi/v3"] = self.index
        handler.paths["/openapi/v3/*"] = self.document

    def _names(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        for group, versions in self._handler.state.catalogue.versions.items():
            for version in versions:
                found[f"apis/{group}/{version}" if group else f"api/{version}"] = (group, version)
        return found

    async def index(self, request: Request) -> Response:
        """Which documents there are. The hash names the release: documents never change while it runs."""
        names = ["api", "apis", "version", *self._names()]
        names += [f"apis/{group}" for group in self._handler.state.catalogue.versions if group]
        tag = hashlib.sha256(_release().encode()).hexdigest().upper()
        paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={tag}"} for name in sorted(names)}
        return Response(200, encode({"paths": paths}), "text/plain; charset=utf-8")

    async def document(self, request: Request) -> Response:
        """One document."""
        name = request.path.removeprefix("/openapi/v3/").strip("/")
        body = self._documents.get(name)
        if body is None:
            target = self._names().get(name)
            known = name in ("api", "apis", "version") or name.removeprefix("apis/") in (
                self._handler.state.catalogue.versions
            )
            if target is None and not known:
                return Response(404, b"", "application/json")
            body = encode(self._make(*target) if target else _frame({}, {}))
            self._documents[name] = body
        return Response(200, body)

    def _make(self, group: str, version: str) -> Tree:
        resources = self._handler.state.catalogue.resources
        served = [s for (g, v, _), s in resources.items() if g == group and v == version]
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        prefix = _title(group, version)
        paths: Tree = {f"{root}/": {"get": {"operationId": f"get{prefix}APIResources", "responses": _ok()}}}
        needed: set[str] = set()
        for one in served:
            _paths_of(one, prefix, paths)
            needed.add(one.kind.definition)
        if served:
            needed |= {
                f"{_META}.{name}" for name in ("DeleteOptions", "Status", "APIResourceList", "WatchEvent", "Patch")
            }
        schemas: Tree = {}
        for one in served:
            if "list" in one.kind.verbs:
                _list_schema(one, schemas, needed)
        for definition in sorted(needed):
            _collect(definition, schemas)
        return _frame(paths, dict(sorted(schemas.items())))


def _release() -> str:
    return str(getattr(importlib.import_module("kubedra"), "__version__", "0"))


def _frame(paths: Tree, schemas: Tree) -> Tree:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _title(group: str, version: str) -> str:
    word = group.split(".", 1)[0] or "core"
    return word[0].upper() + word[1:] + version[0].upper() + version[1:]


def _ok(definition: str = "") -> Tree:
    answer: Tree = {"description": "OK"}
    if definition:
        answer["content"] = {"application/json": {"schema": {"$ref": _REF + definition}}}
    return {"200": answer}


def _parameter(name: str, kind: str = "string", where: str = "query") -> Tree:
    made: Tree = {"name": name, "in": where, "schema": {"type": kind, "uniqueItems": True}}
    return made | {"required": True} if where == "path" else made


_WRITE = [_parameter("dryRun"), _parameter("fieldManager"), _parameter("fieldValidation")]
_LIST = [
    _parameter("allowWatchBookmarks", "boolean"),
    _parameter("continue"),
    _parameter("fieldSelector"),
    _parameter("labelSelector"),
    _parameter("limit", "integer"),
    _parameter("resourceVersion"),
    _parameter("resourceVersionMatch"),
    _parameter("sendInitialEvents", "boolean"),
    _parameter("timeoutSeconds", "integer"),
    _parameter("watch", "boolean"),
]


def _paths_of(served: Served, prefix: str, paths: Tree) -> None:
    kind = served.kind
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    scope = "Namespaced" if kind.namespaced else ""
    collection = f"{kind.root}/{'namespaces/{namespace}/' if kind.namespaced else ''}{kind.plural}"
    listed = kind.definition + "List"

    def operation(action: str, name: str, answer: str, parameters: list[Tree], body: str = "") -> Tree:
        made: Tree = {
            "operationId": name,
            "responses": _ok(answer),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }
        if parameters:
            made["parameters"] = parameters
        if body:
            types = _PATCH_TYPES if action == "patch" else ("*/*",)
            made["requestBody"] = {"content": {t: {"schema": {"$ref": _REF + body}} for t in types}, "required": True}
        return made

    own, patch = kind.definition, f"{_META}.Patch"
    options = f"{_META}.DeleteOptions"
    verbs = set(kind.verbs)
    group: Tree = {"parameters": [_parameter("namespace", where="path")]} if kind.namespaced else {}
    if "list" in verbs:
        group["get"] = operation("list", f"list{prefix}{scope}{kind.kind}", listed, _LIST)
    if "create" in verbs:
        group["post"] = operation("post", f"create{prefix}{scope}{kind.kind}", own, _WRITE, own)
    if "deletecollection" in verbs:
        name = f"delete{prefix}Collection{scope}{kind.kind}"
        group["delete"] = operation("deletecollection", name, f"{_META}.Status", _LIST, options)
    paths[collection] = group
    if kind.namespaced and "list" in verbs:
        every = operation("list", f"list{prefix}{kind.kind}ForAllNamespaces", listed, _LIST)
        paths[f"{kind.root}/{kind.plural}"] = {"get": every}
    single: Tree = {"parameters": [_parameter("name", where="path"), *group.get("parameters", [])]}
    if "get" in verbs:
        single["get"] = operation("get", f"read{prefix}{scope}{kind.kind}", own, [])
    if "update" in verbs:
        single["put"] = operation("put", f"replace{prefix}{scope}{kind.kind}", own, _WRITE, own)
    if "patch" in verbs:
        parameters = [*_WRITE, _parameter("force", "boolean")]
        single["patch"] = operation("patch", f"patch{prefix}{scope}{kind.kind}", own, parameters, patch)
    if "delete" in verbs:
        single["delete"] = operation("delete", f"delete{prefix}{scope}{kind.kind}", f"{_META}.Status", [], options)
    if len(single) > 1:
        paths[f"{collection}/{{name}}"] = single
    for name, sub in kind.subresources.items():
        if sub.kind.endswith("Options"):
            continue
        part: Tree = {"parameters": single["parameters"]}
        word = f"{prefix}{scope}{kind.kind}{name[0].upper()}{name[1:]}"
        gvk = {"group": sub.group, "version": sub.version, "kind": sub.kind}
        if "get" in sub.verbs:
            part["get"] = operation("get", f"read{word}", own, [])
        if "update" in sub.verbs:
            part["put"] = operation("put", f"replace{word}", own, _WRITE, own)
        if "patch" in sub.verbs:
            parameters = [*_WRITE, _parameter("force", "boolean")]
            part["patch"] = operation("patch", f"patch{word}", own, parameters, patch)
        if "create" in sub.verbs:
            part["post"] = operation("post", f"create{word}", own, _WRITE, own)
        paths[f"{collection}/{{name}}/{name}"] = part


def _list_schema(served: Served, schemas: Tree, needed: set[str]) -> None:
    kind = served.kind
    name = kind.definition + "List"
    needed.add(f"{_META}.ListMeta")
    schemas[name] = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"{_REF}{_META}.ListMeta"}], "default": {}},
            "items": {"type": "array", "items": {"allOf": [{"$ref": _REF + kind.definition}], "default": {}}},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": served.list_kind}],
    }


def _collect(name: str, schemas: Tree) -> None:
    """Adds a definition and everything that it refers to."""
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in schemas:
            continue
        shared = _SHARED.get(current)
        if shared is not None:
            schemas[current] = shared
            continue
        try:
            definition = schema.definition(current)
        except KeyError:
            schemas[current] = {"type": "object"}
            continue
        texts = _descriptions().get(current) or {}
        properties: Tree = {}
        for field_name, field in definition.fields.items():
            shape, referred = _shape(field)
            if texts.get("properties", {}).get(field_name, {}).get("description"):
                shape = shape | {"description": texts["properties"][field_name]["description"]}
            properties[field_name] = shape
            waiting += referred
        made: Tree = {"type": "object"}
        if texts.get("description"):
            made["description"] = texts["description"]
        if properties:
            made["properties"] = properties
        if definition.required:
            made["required"] = [n for n in definition.fields if n in definition.required]
        if definition.map_type:
            made["x-kubernetes-map-type"] = definition.map_type
        if definition.gvk:
            made["x-kubernetes-group-version-kind"] = [
                {"group": group, "version": version, "kind": kind} for group, version, kind in definition.gvk
            ]
        schemas[current] = made


def _shape(field: schema.Field) -> tuple[Tree, list[str]]:
    """The schema of a field and the definitions it refers to."""
    made: Tree
    referred: list[str] = []
    if field.ref:
        made, referred = {"allOf": [{"$ref": _REF + field.ref}], "default": {}}, [field.ref]
    elif field.type in _SCALARS:
        made = dict(_SCALARS[field.type])
        referred = [made["$ref"].removeprefix(_REF)]
        made = {"allOf": [made]}
    elif field.type == "array":
        made = {"type": "array"}
        if field.items is not None:
            made["items"], referred = _shape(field.items)
    elif field.type == "object":
        made = {"type": "object"}
        if field.values is not None:
            made["additionalProperties"], referred = _shape(field.values)
    elif field.type == "any":
        made = {"type": "object"}
    else:
        made = {"type": field.type}
        if field.format:
            made["format"] = field.format
    if field.list_type:
        made["x-kubernetes-list-type"] = field.list_type
    if field.list_map_keys:
        made["x-kubernetes-list-map-keys"] = list(field.list_map_keys)
    if field.map_type:
        made["x-kubernetes-map-type"] = field.map_type
    if field.patch_strategy:
        made["x-kubernetes-patch-strategy"] = field.patch_strategy
    if field.patch_merge_key:
        made["x-kubernetes-patch-merge-key"] = field.patch_merge_key
    return made, referred


@cache
def _descriptions() -> dict[str, Tree]:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "kubernetes-json-schema" / "v1.37.0-local" / "_definitions.json"
    try:
        found: dict[str, Tree] = json.loads(path.read_bytes())["$defs"]
    except (OSError, ValueError, KeyError):
        return {}
    return found
