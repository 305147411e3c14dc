"""Writes the field numbers by which Go clients encode built-in kinds as protobuf.

    import_protobuf_numbers.py API_CHECKOUT APIMACHINERY_CHECKOUT [--check]

Reads the struct tags of k8s.io/api and k8s.io/apimachinery (git directories of release 1.37) and keeps facts only:
for every struct its numbers, JSON names, kinds, and whether a field is a pointer (then a zero is a value).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parents[1] / "src" / "kubedra" / "server" / "decoding" / "protobuf_numbers.json"
STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}", re.MULTILINE | re.DOTALL)
ALIAS = re.compile(r"^type (\w+) ([\w.\[\]*]+)$", re.MULTILINE)
FIELD = re.compile(r'^\s*(?:(\w+)\s+)?([\w.\[\]*]+)\s+`json:"([^"]*)"[^`]*? protobuf:"([^"]*)"[^`]*`', re.MULTILINE)
IMPORT = re.compile(r'^\s*(?:(\w+) )?"(k8s\.io/[\w./-]+)"', re.MULTILINE)
BUILTIN = {"string": "s", "bool": "b", "float64": "d", "byte": "y", "int": "i", "int8": "i", "int32": "i", "int64": "i",
           "uint32": "i", "uint8": "i"}  # fmt: skip
KNOWN = {
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "T",
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "U",
    "k8s.io/apimachinery/pkg/apis/meta/v1.Duration": "D",
    "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "F",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Q",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "I",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "R",
    "k8s.io/apimachinery/pkg/types.UID": "s",
    "k8s.io/apimachinery/pkg/types.NodeName": "s",
    "k8s.io/apimachinery/pkg/types.NamespacedName": "s",
}


class Package:
    """Types of one Go package."""

    def __init__(self, path: str, sources: list[str]) -> None:
        self.path = path
        self.structs: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        for source in sources:
            for name, body in STRUCT.findall(source):
                self.structs[name] = body
            self.aliases.update(ALIAS.findall(source))
            for alias, target in IMPORT.findall(source):
                self.imports[alias or target.rsplit("/", 1)[-1]] = target


def git(repo: str, *arguments: str) -> str:
    """Output of git in a directory without a work tree."""
    return subprocess.run(["git", "--git-dir", repo, *arguments], capture_output=True, text=True, check=True).stdout


def packages(repo: str, module: str) -> dict[str, Package]:
    """All packages of a repository that have types."""
    files = [
        name for name in git(repo, "ls-tree", "-r", "HEAD", "--name-only").splitlines() if name.endswith("types.go")
    ]
    grouped: dict[str, list[str]] = {}
    for name in files:
        grouped.setdefault(name.rsplit("/", 1)[0], []).append(name)
    return {
        f"{module}/{folder}": Package(f"{module}/{folder}", [git(repo, "show", f"HEAD:{name}") for name in names])
        for folder, names in grouped.items()
        if "testapigroup" not in folder
    }


def definition(path: str, name: str) -> str:
    """The name of a struct in the schema table."""
    if path == "k8s.io/apimachinery/pkg/apis/meta/v1":
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"
    group, version = path.removeprefix("k8s.io/api/").split("/")
    return f"io.k8s.api.{group}.{version}.{name}"


def code(kind: str, package: Package, every: dict[str, Package]) -> str:
    """The code of a Go type."""
    if kind.startswith("*"):
        return "*" + code(kind[1:], package, every)
    if kind == "[]byte":
        return "y"
    if kind.startswith("[]"):
        return "[" + code(kind[2:], package, every)
    match = re.match(r"map\[[\w.]+\](.+)", kind)
    if match:
        return "{" + code(match[1], package, every)
    if kind in BUILTIN:
        return BUILTIN[kind]
    if "." in kind:
        alias, name = kind.split(".")
        path = package.imports.get(alias, "")
    else:
        path, name = package.path, kind
    full = f"{path}.{name}"
    if full in KNOWN:
        return KNOWN[full]
    owner = every.get(path)
    if owner is None:
        raise SystemExit(f"unknown package of {kind} in {package.path}")
    if name in owner.structs:
        return ":" + definition(path, name)
    if name in owner.aliases:
        target = owner.aliases[name]
        if target.startswith("[]") and target != "[]byte":
            # A named list is a message of its own with the items in it.
            return "L" if code(target[2:], owner, every) == "s" else "!"
        return code(target, owner, every)
    raise SystemExit(f"unknown type {full}")


def reachable(table: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What requests can carry: served kinds, bodies of subresources, and what these hold."""
    kinds = json.loads((OUTPUT.parents[2] / "api" / "kinds_data.json").read_text())
    waiting = [row["definition"] for row in kinds]
    waiting += [
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.authentication.v1.TokenRequest",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    ]
    kept: dict[str, dict[str, str]] = {}
    while waiting:
        name = waiting.pop()
        if name not in kept and name in table:
            kept[name] = table[name]
            waiting += [field.rsplit(":", 1)[1] for field in table[name].values() if ":" in field]
    return kept


def main() -> None:
    """Writes or checks the table."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 2:
        raise SystemExit("two checkouts are needed; usage: import_protobuf_numbers.py API APIMACHINERY [--check]")
    api, machinery = arguments
    every = packages(api, "k8s.io/api") | packages(machinery, "k8s.io/apimachinery")
    wanted = [p for path, p in every.items() if path.startswith("k8s.io/api/") or path.endswith("pkg/apis/meta/v1")]
    table: dict[str, dict[str, str]] = {}
    for package in wanted:
        for name, body in package.structs.items():
            fields: dict[str, str] = {}
            for _, kind, json_tag, proto_tag in FIELD.findall(body):
                number = proto_tag.split(",")[1]
                json_name = json_tag.split(",")[0]
                try:
                    fields[number] = f"{json_name} {code(kind, package, every)}"
                except SystemExit as error:
                    print("skipped", name, kind, error, file=sys.stderr)
            if fields:
                table[definition(package.path, name)] = dict(sorted(fields.items(), key=lambda item: int(item[0])))
    table = reachable(table)
    text = json.dumps(dict(sorted(table.items())), separators=(",", ":")) + "\n"
    if "--check" in sys.argv:
        if OUTPUT.read_text() != text:
            raise SystemExit(f"{OUTPUT} is not current")
        return
    OUTPUT.write_text(text)


if __name__ == "__main__":
    main()
