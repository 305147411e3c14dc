"""``metadata.managedFields``: its entries, their order, and how many there may be.

An entry is kept as the dict that it is in the object; entries that an update does not touch are passed on as they
are. Times are RFC 3339 texts in whole seconds, so that their order is the order of the texts.

Upstream counterpart: apimachinery ``pkg/util/managedfields/internal`` (managedfields.go, capmanagers.go).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubedra.server.patch.apply.fieldset import BadFieldSet, FieldSet, canonical, parse, union

MAX_UPDATE_MANAGERS: Final = 10
_ANCIENT: Final = "ancient-changes"


class ManagerId(NamedTuple):
    """Who an entry belongs to: appliers are the same whatever version they apply in."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def text(self) -> str:
        """The manager as conflict messages name it."""
        out = f'"{self.manager}"'
        if self.subresource:
            out += f' with subresource "{self.subresource}"'
        if self.operation == "Update":
            out += f" using {self.api_version}"
        return out


class Entry(NamedTuple):
    """What a manager owns, in which version, and since when.

    ``raw`` is the entry as the object shows it, if it still holds; ``ordered``: the set is in upstream's order.
    """

    fields: FieldSet
    api_version: str
    time: str
    raw: dict[str, Any] | None = None
    ordered: bool = False

    def owning(self, fields: FieldSet) -> Entry:
        """The entry with fewer fields; the same entry when it lost none."""
        return self if fields is self.fields else Entry(fields, self.api_version, self.time, None, self.ordered)


Managed = dict[ManagerId, Entry]


def updater(manager: str, api_version: str, subresource: str) -> ManagerId:
    """The id of a manager that creates, updates and patches."""
    return ManagerId(manager or "unknown", "Update", api_version, subresource)


def applier(manager: str, subresource: str) -> ManagerId:
    """The id of a manager that applies."""
    return ManagerId(manager or "unknown", "Apply", "", subresource)


def decode(entries: list[Any], trusted: bool) -> Managed:
    """The entries by manager; ``trusted`` ones come from the store and are not checked.

    Raises :class:`BadFieldSet` for what is not a list of managed fields.
    """
    out: Managed = {}
    for raw in entries:
        if not trusted:
            _check(raw)
        operation, api_version = raw["operation"], raw["apiVersion"]
        key = ManagerId(
            raw.get("manager", ""),
            operation,
            "" if operation == "Apply" else api_version,
            raw.get("subresource", ""),
        )
        if trusted:
            out[key] = Entry(raw.get("fieldsV1") or {}, api_version, raw.get("time") or "", raw, True)
        else:
            out[key] = Entry(canonical(parse(raw.get("fieldsV1"))), api_version, raw.get("time") or "", None, True)
    return out


def _check(raw: Any) -> None:
    if not isinstance(raw, dict):
        raise BadFieldSet("a managed fields entry is an object")
    if raw.get("operation") not in ("Apply", "Update"):
        raise BadFieldSet("operation must be `Apply` or `Update`")
    if not raw.get("apiVersion"):
        raise BadFieldSet("apiVersion must not be empty")
    if raw.get("fieldsType") != "FieldsV1":
        raise BadFieldSet(f"invalid fieldsType {raw.get('fieldsType')!r} in managed fields entry")
    for name in ("manager", "time", "subresource", "apiVersion"):
        if not isinstance(raw.get(name) or "", str):
            raise BadFieldSet(f"{name} must be a string")


def encode(managed: Managed) -> list[dict[str, Any]]:
    """The entries as the object shows them: appliers first, then by time, manager, version, subresource."""
    items = sorted(managed.items(), key=_order)
    return [entry.raw if entry.raw is not None else _raw(key, entry) for key, entry in items]


def _order(item: tuple[ManagerId, Entry]) -> tuple[str, str, str, str, str]:
    key, entry = item
    return (key.operation, entry.time, key.manager, entry.api_version, key.subresource)


def _raw(key: ManagerId, entry: Entry) -> dict[str, Any]:
    out: dict[str, Any] = {"manager": key.manager, "operation": key.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = entry.fields if entry.ordered else canonical(entry.fields)
    if key.subresource:
        out["subresource"] = key.subresource
    return out


def cap_updaters(managed: Managed) -> Managed:
    """Merge the oldest updaters of a version into one entry when there are more than ten."""
    updaters = [key for key in managed if key.operation == "Update"]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managed
    updaters.sort(key=lambda key: (managed[key].time, key))
    out = dict(managed)
    first_of: dict[str, ManagerId] = {}
    count = len(updaters)
    for key in updaters:
        if count <= MAX_UPDATE_MANAGERS:
            break
        entry = out[key]
        bucket = ManagerId(_ANCIENT, "Update", entry.api_version, "")
        first = first_of.setdefault(entry.api_version, key)
        if first == key:
            continue
        if bucket not in out:
            out[bucket] = out.pop(first)
        fields = union(out[bucket].fields, entry.fields)
        if key != bucket:
            del out[key]
        out[bucket] = Entry(fields, entry.api_version, entry.time)
        count -= 1
    return out
