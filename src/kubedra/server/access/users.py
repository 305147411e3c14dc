"""Who asks: the identity of a request, and what it wants to do as an authorizer sees it.

Upstream counterpart: apiserver/pkg/authentication/user and pkg/authorization/authorizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
NODE_NAME_EXTRA = "authentication.kubernetes.io/node-name"


@dataclass(frozen=True)
class User:
    """A name with its groups and extra facts (from a certificate, a token or impersonation)."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Attributes(NamedTuple):
    """One question to the authorizer: a resource request, or a path when `resource` is empty."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    version: str = ""
    field_selector: str = ""

    def refusal(self, user: User, reason: str = "") -> str:
        """Upstream's sentence for "you may not"."""
        if not self.resource:
            return f'User "{user.name}" cannot {self.verb} path "{self.path}"' + (f": {reason}" if reason else "")
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        scope = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        text = f'User "{user.name}" cannot {self.verb} resource "{resource}" in API group "{self.group}" {scope}'
        return f"{text}: {reason}" if reason else text


class Decision(NamedTuple):
    """The authorizer's answer and, where it has one, its reason."""

    allowed: bool
    reason: str = ""


def node_name(user: User) -> str:
    """The node whose identity this is, empty for everybody else."""
    if "system:nodes" in user.groups and user.name.startswith("system:node:"):
        return user.name.removeprefix("system:node:")
    return ""
