"""YAML as kubectl reads it, with the line of every field.

The scalars follow kubectl's YAML 1.1 rules (yes/no/on/off are booleans, ``010`` is 8, times stay strings), which
differ from PyYAML's own; duplicate keys are refused with their line. PyYAML's C parser does the parsing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

MAX_DEPTH = 200
MAX_NODES = 2_000_000


class YamlError(Exception):
    """Text that is not YAML, or not the YAML of an object; the text names file and line."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its value, and the line (from 1) of each field by dotted path."""

    value: Any
    filename: str
    line: int
    lines: dict[str, int] = field(default_factory=dict, repr=False)

    def line_of(self, path: str) -> int:
        """The line of a field (``spec.devices.requests[0].name``), or of the nearest parent that was written."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = re.sub(r"(\.[^.\[\]]*|\[[^\]]*\]|^[^.\[]+)$", "", path)
        return self.line


def decode(data: bytes, filename: str) -> str:
    """The text of a file. Raises YamlError that names the line where it stops to be UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlError(f"{filename}:{line}: this is not text in UTF-8") from error


def load_all(text: str, filename: str = "<input>") -> list[Document]:
    """All documents of a text that are not empty. Raises YamlError."""
    out = []
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            if node is None or (isinstance(node, yaml.ScalarNode) and node.value == "" and not node.style):
                continue
            reader = _Reader(filename)
            value = reader.value(node, "", 0)
            out.append(Document(value, filename, node.start_mark.line + 1, reader.lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{filename}:{mark.line + 1}" if mark is not None else filename
        raise YamlError(f"{where}: not valid YAML: {error.problem or error.context or error}") from error
    except yaml.YAMLError as error:
        raise YamlError(f"{filename}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise YamlError(f"{filename}: nested too deeply") from None
    return out


def load(text: str, filename: str = "<input>") -> Any:
    """The value of the only document (None for an empty text). Raises YamlError when there are more."""
    documents = load_all(text, filename)
    if len(documents) > 1:
        raise YamlError(f"{filename}:{documents[1].line}: one document is expected, there are {len(documents)}")
    return documents[0].value if documents else None


def dump(value: Any) -> str:
    """YAML text of a JSON tree, keys in the order they have."""
    return str(yaml.dump(value, Dumper=_StringKeepingDumper, sort_keys=False, allow_unicode=True, width=120))


class _StringKeepingDumper(_Dumper):  # type: ignore[misc]
    """Quotes every string that some reader of YAML 1.1 or 1.2 would take for something else."""


def _represent_string(dumper: Any, text: str) -> Any:
    style = None
    if "\n" in text:
        style = "|"
    elif _scalar(text) != text or _AMBIGUOUS.match(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_StringKeepingDumper.add_representer(str, _represent_string)

_AMBIGUOUS = re.compile(r"^[-+]?[0-9][0-9_:.\-]*$|^[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
}
_NULLS = {"", "~", "null", "Null", "NULL"}
_INFINITE = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN"}
_INTEGER = re.compile(r"^[-+]?[0-9][0-9_]*$")
_BASED = re.compile(r"^[-+]?0(x[0-9a-fA-F_]+|b[01_]+|o[0-7_]+)$")
_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$")


def _scalar(text: str) -> Any:
    """A plain scalar as kubectl types it."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    first = text[0]
    if not (first.isascii() and (first.isdigit() or first in "+-.")):
        return text
    if _INTEGER.match(text):
        digits = text.replace("_", "")
        unsigned = digits.lstrip("+-")
        if len(unsigned) > 1 and unsigned[0] == "0" and all(c in "01234567" for c in unsigned):
            return int(digits, 8)
        if len(unsigned) > 300:
            return text
        return int(digits)
    if _BASED.match(text):
        return int(text.replace("_", ""), 0)
    if _FLOAT.match(text):
        number = float(text.replace("_", ""))
        return int(number) if number.is_integer() and abs(number) < 2**53 and "." not in text else number
    if text in _INFINITE:
        raise YamlError(f"{text} can't be written as JSON")
    return text


class _Reader:
    """Turns a tree of YAML nodes into a value and remembers lines."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.lines: dict[str, int] = {}
        self._nodes = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise YamlError(f"{self.filename}:{node.start_mark.line + 1}: nested too deeply, or aliases multiply")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            out = []
            for i, item in enumerate(node.value):
                where = f"{path}[{i}]"
                self.lines[where] = item.start_mark.line + 1
                out.append(self.value(item, where, depth + 1))
            return out
        found: dict[str, Any] = {}
        for key_node, value_node in self._members(node):
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError(f"{self.filename}:{line}: a key must be a plain word")
            key = self._key(key_node)
            where = f"{path}.{key}" if path else key
            if key in found:
                first = self.lines[where]
                raise YamlError(f"{self.filename}:{line}: the key {key!r} stands twice (first in line {first})")
            self.lines[where] = line
            found[key] = self.value(value_node, where, depth + 1)
        return found

    def _members(self, node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The pairs of a mapping, with ``<<`` merged in behind those that stand there."""
        own = [(k, v) for k, v in node.value if not _is_merge(k)]
        names = {k.value for k, _ in own if isinstance(k, yaml.ScalarNode)}
        yield from own
        for key, value in node.value:
            if not _is_merge(key):
                continue
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    raise YamlError(f"{self.filename}:{key.start_mark.line + 1}: << must name a mapping")
                for k, v in source.value:
                    if isinstance(k, yaml.ScalarNode) and k.value not in names:
                        names.add(k.value)
                        yield k, v

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        tag = node.tag
        if node.style or tag == "tag:yaml.org,2002:binary":
            return node.value
        if tag == "tag:yaml.org,2002:str" and not _looks_plain(node):
            return node.value
        try:
            return _scalar(node.value)
        except YamlError as error:
            raise YamlError(f"{self.filename}:{node.start_mark.line + 1}: {error}") from None

    def _key(self, node: yaml.ScalarNode) -> str:
        value = self._scalar(node)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "null" if value is None else str(value)


def _is_merge(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "<<" and not node.style


def _looks_plain(node: yaml.ScalarNode) -> bool:
    """Whether the tag ``str`` came from PyYAML's resolver and not from a ``!!str`` in the text."""
    span = node.end_mark.index - node.start_mark.index if node.end_mark.index is not None else 0
    return span <= len(node.value) or not str(node.value)
