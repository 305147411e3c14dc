"""What a watch event means for the scheduler: the view, the claims and the inventory follow it, pods are woken by it.

Synchronous and without I/O; the shell calls it between two attempts, never during one. Events that may help all pods
waiting for devices come in bursts (a driver publishes its slices, a deployment goes): they are noted and acted on once
per burst, in `settle`.

Upstream: pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from kubedra.api import core_v1
from kubedra.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kubedra.scheduler import hints
from kubedra.scheduler.claims import ClaimName, name_of
from kubedra.scheduler.dra import DynamicResources, claim_name
from kubedra.scheduler.pods import PodInfo, is_finished, is_ours, pod_info
from kubedra.scheduler.queue import QueuedPod, SchedulingQueue
from kubedra.scheduler.view import ClusterView


class Intake:
    """Applies watch events; `now` is always the steady clock's time."""

    def __init__(self, view: ClusterView, dra: DynamicResources, queue: SchedulingQueue, scheduler_name: str) -> None:
        self._view = view
        self._dra = dra
        self._checker = dra.store.checker
        self._queue = queue
        self._scheduler_name = scheduler_name
        self._users: dict[ClaimName, set[str]] = {}
        self._uses: dict[str, tuple[ClaimName, ...]] = {}
        self._devices_changed = False
        self._names_changed: set[str] = set()
        self._neighbours_changed = False

    # --- pods -----------------------------------------------------------------------------------------

    def pod(self, old: core_v1.Pod | None, new: core_v1.Pod | None, now: float) -> None:
        """A pod came, changed or went."""
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._pod_gone(old.metadata.uid, now)
            old = None
        if new is None:
            return
        uid = new.metadata.uid
        if is_finished(new):
            self._pod_gone(uid, now)
        elif new.spec.node_name:
            self._pod_bound(old, pod_info(new), now)
        elif not is_ours(new, self._scheduler_name) or new.metadata.deletion_timestamp:
            self._forget_pending(uid)
        else:
            self._pod_pending(old, new, now)

    def _pod_gone(self, uid: str, now: float) -> None:
        self._forget_pending(uid)
        node_name = self._view.node_of(uid)
        if node_name is None:
            return
        self._view.remove_pod(uid)
        self.pod_left(node_name, now)

    def pod_left(self, node_name: str, now: float) -> None:
        """A pod does not take room on a node any more; also when a placement of ours was undone."""
        self._queue.wake(hints.pod_left(self._view.nodes.get(node_name), self._dra.extended.bridged), now)

    def _pod_bound(self, old: core_v1.Pod | None, info: PodInfo, now: float) -> None:
        self._forget_pending(info.uid)
        fresh = self._view.node_of(info.uid) is None or self._view.is_assumed(info.uid)
        if fresh or old is None or old.metadata.labels != info.labels:
            self._neighbours_changed = True
        elif old.spec == info.spec and old.metadata.deletion_timestamp == info.pod.metadata.deletion_timestamp:
            return
        self._view.set_pod(info)
        if not fresh and old is not None and old.spec != info.spec:
            self.pod_left(info.node_name, now)

    def _pod_pending(self, old: core_v1.Pod | None, new: core_v1.Pod, now: float) -> None:
        info = pod_info(new)
        known = self._queue.get(info.uid)
        self._note_uses(info)
        if known is None:
            self._queue.add(info, now)
        else:
            self._queue.update(info, now, can_help=hints.own_change_matters(known.pod.pod, new))

    def _note_uses(self, info: PodInfo) -> None:
        names = tuple(
            (info.namespace, name)
            for name in (claim_name(info, entry)[0] for entry in info.spec.resource_claims)
            if name
        )
        if self._uses.get(info.uid, ()) == names:
            return
        self._forget_uses(info.uid)
        if names:
            self._uses[info.uid] = names
            for name in names:
                self._users.setdefault(name, set()).add(info.uid)

    def _forget_pending(self, uid: str) -> None:
        self._queue.remove(uid)
        self._forget_uses(uid)

    def _forget_uses(self, uid: str) -> None:
        for name in self._uses.pop(uid, ()):
            users = self._users[name]
            users.discard(uid)
            if not users:
                del self._users[name]

    # --- nodes and namespaces -------------------------------------------------------------------------

    def node(self, old: core_v1.Node | None, new: core_v1.Node | None, now: float) -> None:
        """A node came, changed or went."""
        if new is None:
            if old is not None:
                self._view.set_node(old.metadata.name, None)
                self._dra.inventory.update_node(None, old.metadata.name)
                if self._checker is not None:
                    self._checker.update_node(None, old.metadata.name)
                self._neighbours_changed = True
            return
        if not hints.node_matters(old, new):
            return
        name = new.metadata.name
        self._view.set_node(name, new)
        self._dra.inventory.update_node(new, name)
        if self._checker is not None:
            self._checker.update_node(new, name)
        self._queue.wake(hints.node_appeared(self._view.nodes[name], self._dra.extended.bridged), now)

    def namespace(self, old: core_v1.Namespace | None, new: core_v1.Namespace | None, now: float) -> None:
        """A namespace came, changed or went."""
        if new is None:
            if old is not None:
                self._view.set_namespace(old.metadata.name, None)
        elif old is None or old.metadata.labels != new.metadata.labels:
            self._view.set_namespace(new.metadata.name, new.metadata.labels)
            self._neighbours_changed = True

    # --- devices --------------------------------------------------------------------------------------

    def resource_slice(self, old: ResourceSlice | None, new: ResourceSlice | None, now: float) -> None:
        """A slice came, changed or went."""
        slice_ = new or old
        if slice_ is None or (old is not None and new is not None and old.spec == new.spec):
            return
        self._dra.inventory.update_slice(new, slice_.metadata.name)
        if self._checker is not None:
            self._checker.update_slice(new, slice_.metadata.name)
        self._devices_changed = True

    def device_class(self, old: DeviceClass | None, new: DeviceClass | None, now: float) -> None:
        """A class came, changed or went."""
        class_ = new or old
        if class_ is None or (old is not None and new is not None and old.spec == new.spec):
            return
        self._dra.inventory.update_class(new, class_.metadata.name)
        if self._checker is not None:
            self._checker.update_class(new, class_.metadata.name)
        self._names_changed |= self._dra.extended.update_class(old, new)
        self._devices_changed = True

    def taint_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None, now: float) -> None:
        """A taint rule came, changed or went."""
        rule = new or old
        if rule is not None:
            self._dra.inventory.update_taint_rule(new, rule.metadata.name)
            if self._checker is not None:
                self._checker.update_taint_rule(new, rule.metadata.name)
            self._devices_changed = True

    def claim(self, old: ResourceClaim | None, new: ResourceClaim | None, now: float) -> None:
        """A claim came, changed or went."""
        before, after = self._dra.store.observe(old, new)
        self._dra.extended.observe(old, new)
        self.claim_changed(before, after, now)

    def claim_changed(self, before: ResourceClaim | None, after: ResourceClaim | None, now: float) -> None:
        """The newest version of a claim is another one: by the watch or by a write of ours."""
        claim = after or before
        if claim is None or before is after:
            return
        freed = (
            before is not None
            and before.status.allocation is not None
            and (after is None or after.metadata.uid != before.metadata.uid or after.status.allocation is None)
        )
        if freed:
            self._devices_changed = True
        users = self._users.get(name_of(claim))
        uids = frozenset(users) if users else frozenset[str]()
        if after is None or before is None:
            owners = {owner.uid for owner in claim.metadata.owner_references if owner.kind == "Pod"}
            uids |= {uid for uid in owners if self._queue.get(uid) is not None}
        if not uids:
            return
        self._queue.regate(now, uids)
        if before is None or after is None or before.status != after.status:
            self._queue.wake(hints.users_of(uids), now)

    def devices_released(self) -> None:
        """Devices that were taken for a pod are free again although no claim changed."""
        self._devices_changed = True

    # --- bursts ---------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Act on what was noted since the last time."""
        if self._devices_changed:
            self._devices_changed = False
            names, self._names_changed = frozenset(self._names_changed), set()
            self._queue.wake(hints.devices_changed(names), now)
        if self._neighbours_changed:
            self._neighbours_changed = False
            self._queue.wake(hints.neighbours_changed, now)

    def users(self, claim: ClaimName) -> frozenset[str]:
        """Uids of the pending pods that use a claim."""
        return frozenset(self._users.get(claim, ()))

    def entry(self, uid: str) -> QueuedPod | None:
        """The pending pod with that uid."""
        return self._queue.get(uid)
