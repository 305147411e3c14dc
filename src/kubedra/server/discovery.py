"""Discovery: which groups, versions and resources are served, plain and aggregated.

Made from the catalogue once per form and kept as bytes. Upstream counterpart: apiserver/pkg/endpoints/discovery.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
from typing import Any

from kubedra.api.errors import ApiError
from kubedra.server.handler import Handler, no_method, no_resource
from kubedra.server.requests import Request, Response
from kubedra.server.serving import VIRTUAL, Served, encode

Tree = dict[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Upstream's order of groups, which decides what a short name such as "ev" means.
_ORDER = ("", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
          "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
          "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
          "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io",
          "flowcontrol.apiserver.k8s.io")  # fmt: skip


class Discovery:
    """Answers /api, /apis and everything below that is not a resource."""

    def __init__(self, handler: Handler) -> None:
        self._catalogue = handler.state.catalogue
        self._cache: dict[str, bytes] = {}
        handler.paths["/api"] = self.core
        handler.paths["/apis"] = self.groups
        handler.paths["/api/*"] = self.below
        handler.paths["/apis/*"] = self.below

    def _groups(self) -> list[str]:
        known = {group: index for index, group in enumerate(_ORDER)}
        return sorted((g for g in self._catalogue.versions if g), key=lambda g: (known.get(g, len(known)), g))

    def _cached(self, name: str, make: Any) -> Response:
        body = self._cache.get(name)
        if body is None:
            body = self._cache[name] = encode(make())
        return Response(200, body)

    def _wants(self, request: Request) -> str:
        """ "aggregated", "yaml" or "plain"."""
        accept = request.headers.get("accept", "")
        refused = False
        for clause in accept.split(","):
            media, *rest = [part.strip() for part in clause.split(";")]
            options = dict(part.split("=", 1) for part in rest if "=" in part)
            if "as" in options:
                if options["as"] == "APIGroupDiscoveryList" and options.get("v") == "v2":
                    return "aggregated"
                refused = True
            elif media == "application/yaml":
                return "yaml"
            elif media in ("application/json", "*/*", ""):
                return "plain"
        if refused:
            supported = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {supported}")
        return "plain"

    async def core(self, request: Request) -> Response:
        """/api."""
        if self._wants(request) == "aggregated":
            return self._aggregated("/api", [""])
        return self._cached(
            "core",
            lambda: {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
            },
        )

    async def groups(self, request: Request) -> Response:
        """/apis."""
        if self._wants(request) == "aggregated":
            return self._aggregated("/apis", self._groups())
        return self._cached(
            "groups",
            lambda: {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(g) for g in self._groups()]},
        )

    def _aggregated(self, name: str, groups: list[str]) -> Response:
        response = self._cached(
            f"aggregated {name}",
            lambda: {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": "apidiscovery.k8s.io/v2",
                "metadata": {},
                "items": [self._aggregated_group(group) for group in groups],
            },
        )
        response.content_type = AGGREGATED
        return response

    async def below(self, request: Request) -> Response:
        """/api/v1, /apis/GROUP and /apis/GROUP/VERSION."""
        parts = request.path.strip("/").split("/")
        if parts[0] == "api":
            group, version = "", parts[1]
            if version not in self._catalogue.versions.get("", ()):
                return no_resource()
        else:
            group, version = parts[1], parts[2] if len(parts) > 2 else ""
            if group not in self._catalogue.versions:
                return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")
            if version and version not in self._catalogue.versions[group]:
                return no_resource()
        if request.method not in ("GET", "HEAD"):
            return no_method()
        if not version:
            return self._cached(f"group {group}", lambda: {"kind": "APIGroup", "apiVersion": "v1"} | self._group(group))
        form = self._wants(request)
        response = self._cached(f"resources {group}/{version}", lambda: self._resources(group, version))
        if form == "yaml":
            text: str = importlib.import_module("kubedra.base.yaml").dump(_sorted(self._resources(group, version)))
            return Response(200, text.encode(), "application/yaml")
        return response

    def _group(self, group: str) -> Tree:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self._catalogue.versions[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _served(self, group: str, version: str) -> list[Served]:
        found = [s for (g, v, _), s in self._catalogue.resources.items() if g == group and v == version]
        return sorted(found, key=lambda served: served.kind.plural)

    def _resources(self, group: str, version: str) -> Tree:
        entries: list[Tree] = []
        for served in self._served(group, version):
            kind = served.kind
            entry: Tree = {
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": sorted(kind.verbs),
            }
            if kind.short_names:
                entry["shortNames"] = list(kind.short_names)
            if kind.categories:
                entry["categories"] = list(kind.categories)
            if kind.kind not in VIRTUAL:
                entry["storageVersionHash"] = _storage_hash(served)
            entries.append(entry)
            for name, sub in sorted(kind.subresources.items()):
                part: Tree = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
                if (sub.group, sub.version) != (group, version):
                    part |= {"group": sub.group, "version": sub.version}
                entries.append(part | {"kind": sub.kind, "verbs": sorted(sub.verbs)})
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}

    def _aggregated_group(self, group: str) -> Tree:
        versions = []
        for version in self._catalogue.versions[group]:
            resources = [_aggregated_resource(served) for served in self._served(group, version)]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(served: Served) -> Tree:
    kind = served.kind
    entry: Tree = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": sorted(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    subresources = []
    for name, sub in sorted(kind.subresources.items()):
        same = (sub.group, sub.version) == (kind.group, kind.version)
        response = {"group": "" if same else sub.group, "version": "" if same else sub.version, "kind": sub.kind}
        subresources.append({"subresource": name, "responseKind": response, "verbs": sorted(sub.verbs)})
    if subresources:
        entry["subresources"] = subresources
    return entry


def _storage_hash(served: Served) -> str:
    kind = served.storage_kind
    text = f"{kind.group}/{kind.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _sorted(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _sorted(tree[name]) for name in sorted(tree)}
    if isinstance(tree, list):
        return [_sorted(item) for item in tree]
    return tree
