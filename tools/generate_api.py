"""Writes the Kubernetes API as data: ``api/schema_data.json``, ``api/kinds_data.json`` and the typed modules.

Sources are two development dependencies: the JSON schema of 1.37 in ``kubernetes-validate`` (fields, types, list
and merge facts) and ``lightkube`` (plural, verbs, scope, subresources). Nothing of them is needed at run time.
``--check`` writes nothing and exits 1 when a file is not what this program would write.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import lightkube.resources
from lightkube.core import resource as lightkube_resource

VERSION = "v1.37.0-local"
API = Path(__file__).resolve().parents[1] / "src" / "kubedra" / "api"

# Definitions that are a value of their own rather than a struct.
LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intorstring",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "any",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": "any",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "any",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}

# The kinds that our own code reads as structs; all they refer to comes along.
TYPED = {
    "io.k8s.api.core.v1": [
        "Pod",
        "Node",
        "Namespace",
        "Event",
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "ResourceQuota",
        "Binding",
        "PersistentVolumeClaim",
        "PodTemplateSpec",
    ],
    "io.k8s.api.apps.v1": ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"],
    "io.k8s.api.batch.v1": ["Job"],
    "io.k8s.api.policy.v1": ["PodDisruptionBudget", "Eviction"],
    "io.k8s.api.coordination.v1": ["Lease"],
    "io.k8s.api.scheduling.v1": ["PriorityClass"],
    "io.k8s.api.scheduling.v1beta1": ["PodGroup"],
    "io.k8s.api.events.v1": ["Event"],
    "io.k8s.api.rbac.v1": ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"],
    "io.k8s.api.authentication.v1": ["TokenRequest", "TokenReview", "SelfSubjectReview"],
    "io.k8s.api.authorization.v1": ["SubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview"],
    "io.k8s.api.resource.v1": [
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "DeviceClass",
        "DeviceTaintRule",
    ],
    "io.k8s.api.resource.v1alpha3": ["ResourcePoolStatusRequest"],
    "io.k8s.apimachinery.pkg.apis.meta.v1": ["Status", "DeleteOptions", "LabelSelector", "Condition"],
}
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

# Storage plug-ins that kubedra never mounts stay plain trees: nobody reads inside them.
UNTYPED_FIELDS = {
    "io.k8s.api.core.v1.Volume": {
        "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
        "gcePersistentDisk", "gitRepo", "glusterfs", "iscsi", "nfs", "photonPersistentDisk", "portworxVolume",
        "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume", "image",
    },
}  # fmt: skip

# Strings whose absence differs from the empty string.
OPTIONAL_STRINGS = {
    ("io.k8s.api.resource.v1.DeviceAttribute", "string"),
    ("io.k8s.api.resource.v1.DeviceAttribute", "version"),
    ("io.k8s.api.resource.v1.DeviceRequestAllocationResult", "shareID"),
    ("io.k8s.api.resource.v1.ResourceSliceSpec", "nodeName"),
    ("io.k8s.api.resource.v1.Device", "nodeName"),
    ("io.k8s.api.resource.v1.DeviceTaintSelector", "driver"),
    ("io.k8s.api.resource.v1.DeviceTaintSelector", "pool"),
    ("io.k8s.api.resource.v1.DeviceTaintSelector", "device"),
    ("io.k8s.api.resource.v1.DeviceClassSpec", "extendedResourceName"),
    ("io.k8s.api.resource.v1.CapacityRequestPolicy", "default"),
    ("io.k8s.api.core.v1.PodResourceClaimStatus", "resourceClaimName"),
    ("io.k8s.api.core.v1.PodResourceClaim", "resourceClaimName"),
    ("io.k8s.api.core.v1.PodResourceClaim", "resourceClaimTemplateName"),
    ("io.k8s.api.core.v1.Container", "restartPolicy"),
}
# Empty rather than absent, so that readers need no check (a Struct is never written back as a whole).
ALWAYS_PRESENT = {"metadata", "spec", "status", "template", "devices"}
RESERVED = {"int": "int_", "bool": "bool_", "continue": "continue_", "from": "from_", "except": "except_"}

SHORT_NAMES = {
    "componentstatuses": ["cs"], "configmaps": ["cm"], "endpoints": ["ep"], "events": ["ev"],
    "limitranges": ["limits"], "namespaces": ["ns"], "nodes": ["no"], "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"], "pods": ["po"], "replicationcontrollers": ["rc"], "resourcequotas": ["quota"],
    "serviceaccounts": ["sa"], "services": ["svc"], "customresourcedefinitions": ["crd", "crds"],
    "daemonsets": ["ds"], "deployments": ["deploy"], "replicasets": ["rs"], "statefulsets": ["sts"],
    "horizontalpodautoscalers": ["hpa"], "cronjobs": ["cj"], "certificatesigningrequests": ["csr"],
    "ingresses": ["ing"], "networkpolicies": ["netpol"], "poddisruptionbudgets": ["pdb"],
    "priorityclasses": ["pc"], "storageclasses": ["sc"], "volumeattributesclasses": ["vac"],
    "ipaddresses": ["ip"],
}  # fmt: skip
IN_ALL = {
    ("", "pods"), ("", "replicationcontrollers"), ("", "services"), ("apps", "daemonsets"), ("apps", "deployments"),
    ("apps", "replicasets"), ("apps", "statefulsets"), ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"), ("batch", "jobs"),
}  # fmt: skip
CATEGORIES = {"customresourcedefinitions": ["api-extensions"]}


def definitions() -> dict[str, Any]:
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / VERSION
    found: dict[str, Any] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    return found


def reference(node: dict[str, Any]) -> str | None:
    target = node.get("$ref")
    return None if target is None else str(target).rsplit("/", 1)[1]


def plain_type(node: dict[str, Any]) -> str:
    kind = node.get("type")
    if isinstance(kind, list):
        kind = next(k for k in kind if k != "null")
    return kind or "any"


def field(node: dict[str, Any]) -> dict[str, Any]:
    """One field as the table holds it; short keys, only those that say something."""
    out: dict[str, Any] = {}
    target = reference(node)
    if target is not None:
        if target in LEAVES:
            out["t"] = LEAVES[target]
        else:
            out["t"] = "object"
            out["r"] = target
    elif node.get("x-kubernetes-int-or-string"):
        out["t"] = "intorstring"
    else:
        out["t"] = plain_type(node)
    if "format" in node:
        out["f"] = node["format"]
    if "items" in node:
        out["i"] = field(node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        out["m"] = field(node["additionalProperties"])
    for key, short in (
        ("x-kubernetes-list-type", "lt"),
        ("x-kubernetes-list-map-keys", "lk"),
        ("x-kubernetes-map-type", "mt"),
        ("x-kubernetes-patch-strategy", "ps"),
        ("x-kubernetes-patch-merge-key", "mk"),
    ):
        if key in node:
            out[short] = node[key]
    return out


def schema_table(found: dict[str, Any]) -> str:
    table: dict[str, Any] = {}
    for name, node in sorted(found.items()):
        if name in LEAVES:
            continue
        row: dict[str, Any] = {"fields": {k: field(v) for k, v in node.get("properties", {}).items()}}
        if node.get("required"):
            row["required"] = node["required"]
        if "x-kubernetes-group-version-kind" in node:
            row["gvk"] = [[g["group"], g["version"], g["kind"]] for g in node["x-kubernetes-group-version-kind"]]
        if "x-kubernetes-map-type" in node:
            row["mt"] = node["x-kubernetes-map-type"]
        table[name] = row
    return json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n"


VERBS = {"post": "create", "put": "update"}


def kinds_table(found: dict[str, Any]) -> list[dict[str, Any]]:
    by_gvk: dict[tuple[str, str, str], str] = {}
    for name, node in found.items():
        for g in node.get("x-kubernetes-group-version-kind", ()):
            by_gvk.setdefault((g["group"], g["version"], g["kind"]), name)
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    subresources: dict[tuple[str, str, str], dict[str, Any]] = {}
    for module_info in pkgutil.iter_modules(lightkube.resources.__path__):
        module = importlib.import_module(f"lightkube.resources.{module_info.name}")
        for cls in vars(module).values():
            info = getattr(cls, "_api_info", None)
            if info is None or not isinstance(cls, type) or cls.__module__ != module.__name__:
                continue
            verbs = sorted({VERBS.get(v, v) for v in info.verbs if not v.startswith("global_")})
            if info.parent is not None:
                key = (info.parent.group, info.parent.version, info.parent.kind)
                subresources.setdefault(key, {})[info.action] = {
                    "group": info.resource.group,
                    "version": info.resource.version,
                    "kind": info.resource.kind,
                    "verbs": verbs,
                }
                continue
            namespaced = issubclass(cls, lightkube_resource.NamespacedResource)
            gvk = (info.resource.group, info.resource.version, info.resource.kind)
            rows[gvk] = {"verbs": verbs, "plural": info.plural, "namespaced": namespaced}
    out = []
    for gvk, row in sorted(rows.items()):
        group, version, kind = gvk
        entry = {
            "group": group,
            "version": version,
            "kind": kind,
            "plural": row["plural"],
            "namespaced": row["namespaced"],
            "verbs": row["verbs"],
            "definition": by_gvk[gvk],
        }
        short = SHORT_NAMES.get(row["plural"])
        if short and not (row["plural"] == "events" and group not in ("", "events.k8s.io")):
            entry["shortNames"] = short
        categories = list(CATEGORIES.get(row["plural"], []))
        if (group, row["plural"]) in IN_ALL:
            categories.append("all")
        if categories:
            entry["categories"] = categories
        if gvk in subresources:
            entry["subresources"] = dict(sorted(subresources[gvk].items()))
        name = by_gvk[gvk]
        prefix, _, short_name = name.rpartition(".")
        if short_name in TYPED.get(prefix, ()):
            entry["module"] = module_of(name)
        out.append(entry)
    return out


def kinds_json(rows: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n"


# ---- typed modules -------------------------------------------------------------------------------------------------


def module_of(definition: str) -> str:
    if definition.startswith(META):
        return "meta_v1"
    parts = definition.split(".")
    return f"{parts[-3]}_{parts[-2]}"


def snake(name: str) -> str:
    if name in RESERVED:
        return RESERVED[name]
    name = re.sub(r"(IP|CIDR|ID|URL|GMSA|PID)s$", lambda m: m.group(1).capitalize() + "s", name)
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return name.lower()


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(w[:1].upper() + w[1:] for w in rest)


SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
LEAF_TYPES = {"quantity": "str", "time": "str", "microtime": "str", "intorstring": "int | str", "any": "Any"}


class Writer:
    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        self.needed: dict[str, None] = {}
        for prefix, names in TYPED.items():
            for name in names:
                self.collect(f"{prefix}.{name}")

    def fields_of(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.found[name].get("properties", {})
        return properties

    def collect(self, name: str) -> None:
        if name in self.needed or name in LEAVES:
            return
        self.needed[name] = None
        untyped = UNTYPED_FIELDS.get(name, set())
        for key, node in self.fields_of(name).items():
            if key in untyped:
                continue
            for part in (node, node.get("items", {}), node.get("additionalProperties", {})):
                if isinstance(part, dict) and (target := reference(part)):
                    self.collect(target)

    def type_of(self, node: dict[str, Any], module: str) -> str:
        target = reference(node)
        if target is not None:
            if target in LEAVES:
                return LEAF_TYPES[LEAVES[target]]
            short = target.rsplit(".", 1)[1]
            other = module_of(target)
            return short if other == module else f"{other}.{short}"
        kind = plain_type(node)
        if kind in SCALARS:
            return SCALARS[kind]
        if kind == "array":
            return f"tuple[{self.type_of(node['items'], module)}, ...]"
        if kind == "object":
            values = node.get("additionalProperties")
            return f"dict[str, {self.type_of(values, module)}]" if isinstance(values, dict) else "dict[str, Any]"
        return "Any"

    def line(self, name: str, key: str, node: dict[str, Any], required: bool, module: str) -> str:
        kind = self.type_of(node, module)
        attribute = snake(key)
        if key in UNTYPED_FIELDS.get(name, set()):
            kind = "dict[str, Any]"
            default = "None"
        elif kind.startswith("tuple["):
            default = "()"
        elif kind.startswith("dict["):
            default = "{}"
        elif kind == "str":
            default = "None" if (name, key) in OPTIONAL_STRINGS else '""'
        elif kind == "int" and required:
            default = "0"
        elif kind == "bool" and required:
            default = "False"
        elif reference(node) is not None and reference(node) not in LEAVES and (key in ALWAYS_PRESENT or required):
            default = f"{kind}()"
        else:
            default = "None"
        annotation = kind if default != "None" or kind == "Any" else f"{kind} | None"
        if camel(attribute) == key and not attribute.endswith("_"):
            value = default
        elif default == "{}":
            value = f'_field(default_factory=dict, name="{key}")'
        else:
            value = f'_field(default={default}, name="{key}")'
        return f"    {attribute}: {annotation} = {value}"

    def modules(self) -> dict[str, str]:
        """Write each module with the structs a struct's defaults need before it."""
        by_module: dict[str, list[str]] = {}
        done: set[str] = set()

        def visit(name: str) -> None:
            if name in done:
                return
            done.add(name)
            required = set(self.found[name].get("required", ()))
            for key, node in self.fields_of(name).items():
                target = reference(node)
                if (key in ALWAYS_PRESENT or key in required) and target and target not in LEAVES:
                    visit(target)
            by_module.setdefault(module_of(name), []).append(name)

        for name in sorted(self.needed):
            visit(name)
        return {module: self.module(module, names) for module, names in by_module.items()}

    def module(self, module: str, names: list[str]) -> str:
        body: list[str] = []
        for name in names:
            short = name.rsplit(".", 1)[1]
            node = self.found[name]
            required = set(node.get("required", ()))
            lines = [
                self.line(name, key, value, key in required, module)
                for key, value in sorted(self.fields_of(name).items())
            ]
            flat = all(line.split(": ", 1)[1].split(" = ")[0] in FLAT for line in lines)
            options = 'frozen=True, kw_only=True, omit_defaults=True, rename="camel"' + (", gc=False" if flat else "")
            body.append(f"\n\nclass {short}(Struct, {options}):\n" + ("\n".join(lines) if lines else "    pass"))
        text = "".join(body)
        others = sorted(set(re.findall(r"\b([a-z0-9]+_v\d\w*)\.[A-Z]", text)) - {module})
        imports = "from __future__ import annotations\n\n"
        if "Any" in text:
            imports += "from typing import Any\n\n"
        imports += "from msgspec import Struct\n"
        if "_field(" in text:
            imports += "from msgspec import field as _field\n"
        if others:
            imports += f"\nfrom kubedra.api import {', '.join(others)}\n"
        title = f'"""Kubernetes 1.37, {module.replace("_", "/")}: written by tools/generate_api.py, do not edit."""\n\n'
        return title + imports + text + "\n"


FLAT = {"str", "int", "bool", "float", "str | None", "int | None", "bool | None", "float | None", "int | str | None"}


def formatted(text: str) -> str:
    done = subprocess.run(
        ["ruff", "format", "--line-length", "120", "-"], input=text, text=True, capture_output=True, check=True
    )
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is not current")
    options = parser.parse_args()
    found = definitions()
    files = {
        API / "schema_data.json": schema_table(found),
        API / "kinds_data.json": kinds_json(kinds_table(found)),
    }
    for module, text in Writer(found).modules().items():
        files[API / f"{module}.py"] = formatted(text)
    stale = [p for p, text in files.items() if not p.exists() or p.read_text() != text]
    if options.check:
        for path in stale:
            print(f"{path.name} is not current: run tools/generate_api.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(files[path])
        print(f"wrote {path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
