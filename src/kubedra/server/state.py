"""What every verb works with: the store, the catalogue of served kinds, the clock, the gates, who may do what."""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from kubedra.base.clock import Clock, format_time
from kubedra.base.features import FeatureGates
from kubedra.server.access.users import Attributes, Decision, User
from kubedra.server.serving import Catalogue
from kubedra.server.store import Key, Store

# Upstream's alphabet for generated names: no vowels, no look-alikes.
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Authorizer(Protocol):
    """Answers whether a user may do something."""

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """The decision; must be quick and without I/O."""
        ...


class Admission(Protocol):
    """Changes or refuses an object on its way into the store."""

    def create(self, call: Any, tree: dict[str, Any]) -> None:
        """Called after decoding and defaulting, before validation. Raises `ApiError`."""
        ...

    def update(self, call: Any, tree: dict[str, Any], old: dict[str, Any]) -> None:
        """The same for a change."""
        ...

    def delete(self, call: Any, old: dict[str, Any]) -> None:
        """Called before an object is deleted."""
        ...


class SystemClock:
    """The clock of the machine (the server stands above no client, so it has its own)."""

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.now(UTC)


@dataclass
class ServerState:
    """The parts that verbs share."""

    store: Store
    catalogue: Catalogue
    features: FeatureGates
    authorizer: Authorizer
    clock: Clock | SystemClock = field(default_factory=SystemClock)
    admission: list[Admission] = field(default_factory=list)
    # Seeded from the system once: a system call for every uid costs more than the rest of a create.
    random: random.Random = field(default_factory=lambda: random.Random(secrets.randbits(256)))
    extras: dict[str, Any] = field(default_factory=dict)
    _moment: datetime | None = None
    _now: str = ""

    def now(self) -> str:
        """The time as the API writes it: whole seconds, formatted once a second."""
        moment = self.clock.now().replace(microsecond=0)
        if moment != self._moment:
            self._moment, self._now = moment, format_time(moment)
        return self._now

    def new_uid(self) -> str:
        """A fresh uid: a random UUID of version 4."""
        text = f"{self.random.getrandbits(128):032x}"
        variant = "89ab"[int(text[16], 16) & 3]
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"

    def name_suffix(self) -> str:
        """Five characters for generateName."""
        return "".join(self.random.choices(_NAME_ALPHABET, k=5))

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Labels of a namespace, None if there is none."""
        record = self.store.get(Key("namespaces", "", name))
        if record is None:
            return None
        labels: Mapping[str, str] = record.shared_tree()["metadata"].get("labels") or {}
        return labels
