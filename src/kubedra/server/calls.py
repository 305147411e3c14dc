"""One request to a resource, understood: which kind, which object, which verb, with which options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubedra.api import fields as f
from kubedra.api.errors import ApiError
from kubedra.server.registry.strategy import StrategyContext
from kubedra.server.requests import Request
from kubedra.server.serving import Served
from kubedra.server.state import ServerState
from kubedra.server.store import Key

_WRITE_VERBS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@dataclass(slots=True)
class Call:
    """A resolved request. `warnings` end up as Warning headers."""

    state: ServerState
    request: Request
    served: Served
    verb: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Where the object lives."""
        return Key(self.served.storage, self.namespace, self.name)

    def option(self, name: str) -> str:
        """A query parameter, empty if it is missing."""
        return self.request.query.get(name, "")

    def flag(self, name: str) -> bool:
        """A boolean query parameter as Go reads it."""
        value = self.request.query.get(name)
        return value is not None and value.lower() not in ("false", "0", "f")

    @property
    def dry_run(self) -> bool:
        """True if nothing may be stored."""
        return bool(self.request.query.get("dryRun"))

    @property
    def field_validation(self) -> str:
        """Strict, Warn or Ignore."""
        return self.request.query.get("fieldValidation") or "Warn"

    @property
    def manager(self) -> str:
        """Who is written into managedFields: the parameter, else the first word of the user agent."""
        given = self.request.query.get("fieldManager", "")
        if given:
            return given
        agent = self.request.headers.get("user-agent", "")
        return agent.split("/", 1)[0][:128] or "unknown"

    def context(self) -> StrategyContext:
        """What strategies get to see."""
        user, authorizer = self.request.user, self.state.authorizer
        return StrategyContext(
            kind=self.served.storage_kind,
            operation=self.verb,
            namespace=self.namespace,
            name=self.name,
            subresource=self.subresource,
            user=user,
            features=self.state.features,
            now=self.state.now(),
            namespace_labels=self.state.namespace_labels,
            authorize=lambda attributes: authorizer.authorize(user, attributes),
        )

    def check_options(self) -> None:
        """Refuses unknown values of the options of a write."""
        query = self.request.query
        if not query:
            return
        errors: list[f.FieldError] = []
        dry_run = query.get("dryRun")
        if dry_run is not None and dry_run != "All":
            errors.append(f.not_supported("dryRun", [dry_run], ["All"]))
        manager = query.get("fieldManager", "")
        if len(manager) > 128:
            errors.append(f.FieldError(f.TOO_LONG, "fieldManager", manager, "may not be more than 128 bytes"))
        for position, character in enumerate(manager):
            if not character.isprintable():
                shown = manager.encode("unicode_escape").decode()
                detail = f"invalid character U+{ord(character):04X} (at position {position})"
                errors.append(f.invalid("fieldManager", shown, detail))
                break
        validation = query.get("fieldValidation", "")
        if validation not in ("", "Ignore", "Warn", "Strict"):
            errors.append(f.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
        if errors:
            raise invalid_options(_WRITE_VERBS.get(self.verb, "DeleteOptions"), errors)


def invalid_options(kind: str, errors: list[f.FieldError]) -> ApiError:
    """422 about the options of a request."""
    details: dict[str, Any] = {
        "group": "meta.k8s.io",
        "kind": kind,
        "causes": [{"reason": e.type, "message": e.error_body(), "field": e.field} for e in errors],
    }
    texts = [str(error) for error in errors]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {joined}', details)
