"""Controller revisions: the templates that a StatefulSet or DaemonSet has had.

Counterpart: ``pkg/controller/history``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubedra.api import apps_v1, codec, core_v1, kinds, meta_v1
from kubedra.controllers import pods as podlib
from kubedra.controllers.actions import Create, Delete, Patch

HASH_LABEL = "controller-revision-hash"


def revision_name(owner: meta_v1.ObjectMeta, template: core_v1.PodTemplateSpec) -> str:
    """The name of the revision of a template."""
    return f"{owner.name}-{podlib.template_hash(template)}"


def owned_revisions(
    owner: meta_v1.ObjectMeta, revisions: Sequence[apps_v1.ControllerRevision]
) -> list[apps_v1.ControllerRevision]:
    """The revisions that an object controls, oldest first."""
    mine = [r for r in revisions if (o := podlib.controller_of(r.metadata)) is not None and o.uid == owner.uid]
    return sorted(mine, key=lambda r: r.revision or 0)


def keep_revision(
    kind: kinds.Kind[Any],
    owner: meta_v1.ObjectMeta,
    template: core_v1.PodTemplateSpec,
    revisions: Sequence[apps_v1.ControllerRevision],
    in_use: set[str],
    limit: int,
) -> list[Create | Patch | Delete]:
    """Record the current template, number it newest, and drop revisions beyond the limit that no pod uses."""
    name = revision_name(owner, template)
    mine = owned_revisions(owner, revisions)
    newest = max((r.revision or 0 for r in mine), default=0)
    current = next((r for r in mine if r.metadata.name == name), None)
    out: list[Create | Patch | Delete] = []
    if current is None:
        tree = {
            "metadata": {
                "name": name,
                "namespace": owner.namespace,
                "labels": {**template.metadata.labels, HASH_LABEL: name},
                "ownerReferences": [podlib.owner_reference(kind, owner)],
            },
            "data": {"spec": {"template": codec.to_tree(template) | {"$patch": "replace"}}},
            "revision": newest + 1,
        }
        out.append(Create(kinds.CONTROLLER_REVISION, tree, owner.namespace))
    elif (current.revision or 0) < newest:
        patch = {"metadata": {"uid": current.metadata.uid}, "revision": newest + 1}
        out.append(Patch(kinds.CONTROLLER_REVISION, name, owner.namespace, patch))
    idle = [r for r in mine if r.metadata.name not in in_use | {name}]
    for r in idle[: max(len(idle) - limit, 0)]:
        out.append(Delete(kinds.CONTROLLER_REVISION, r.metadata.name, owner.namespace, uid=r.metadata.uid))
    return out
