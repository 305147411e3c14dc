"""What the agent remembers of claims, and what that says to do next: events in, instructions out.

Pure: no calls, no files. The shell (preparing.py) tells what happened, writes the checkpoint when it is told to,
and makes the calls that it is given. Rules: a claim is written down before the driver is called; it is prepared
once for all pods that share it; it is unprepared only when the last pod lets go, and only by pods that really hold
it; what was half done when the agent died is done again. Upstream counterpart: claiminfo.go and manager.go of
pkg/kubelet/cm/dra, without their defects: devices are replaced and never appended, and a pod that never held a
claim can't unprepare it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubedra.node.claims.resolving import PrepareError, WantedClaim
from kubedra.wire.dra import Claim, Device, PrepareResult


class ClaimState(msgspec.Struct, frozen=True):
    """One claim on this node. ``prepared`` is not remembered over a restart: drivers are asked again."""

    uid: str
    name: str
    namespace: str
    pods: frozenset[str] = frozenset()
    drivers: dict[str, tuple[Device, ...]] = {}
    skip_unprepare: frozenset[str] = frozenset()
    prepared: bool = False

    @property
    def claim(self) -> Claim:
        """As drivers are told."""
        return Claim(self.namespace, self.uid, self.name)


class Call(msgspec.Struct, frozen=True):
    """One call to one driver, with all claims of the pod that it serves."""

    driver: str
    claims: tuple[Claim, ...]


class Instructions(msgspec.Struct, frozen=True):
    """What the shell does now: save first if told so, then the calls one after another; the first error ends it."""

    save: bool = False
    calls: tuple[Call, ...] = ()


class ClaimCache:
    """All claims that are, or may be, prepared on this node, by uid."""

    def __init__(self, states: Iterable[ClaimState] = ()) -> None:
        self._states = {state.uid: state for state in states}

    def __repr__(self) -> str:
        prepared = sum(state.prepared for state in self._states.values())
        return f"<ClaimCache {len(self._states)} claims, {prepared} prepared>"

    @property
    def states(self) -> tuple[ClaimState, ...]:
        """Everything, in the order it came: what a checkpoint holds."""
        return tuple(self._states.values())

    def pods(self) -> frozenset[str]:
        """The uids of all pods that hold a claim here."""
        return frozenset().union(*(state.pods for state in self._states.values()))

    def held_by(self, pod_uid: str) -> tuple[ClaimState, ...]:
        """The claims that a pod holds."""
        return tuple(state for state in self._states.values() if pod_uid in state.pods)

    def devices(self, namespace: str, name: str) -> tuple[tuple[str, Device], ...]:
        """The (driver, device) pairs of a claim."""
        for state in self._states.values():
            if (state.namespace, state.name) == (namespace, name):
                return tuple((driver, device) for driver, devices in state.drivers.items() for device in devices)
        return ()

    # ---- preparing ----

    def prepare(self, pod_uid: str, wanted: Iterable[WantedClaim]) -> Instructions:
        """A pod is about to start with these claims (all checked); raises PrepareError."""
        wanted = tuple(wanted)
        for claim in wanted:
            for state in self._states.values():
                if (state.namespace, state.name) == (claim.namespace, claim.name) and state.uid != claim.uid:
                    raise PrepareError(
                        f"old ResourceClaim with same name {claim.name} and different UID {state.uid} still exists "
                        "(previous pod force-deleted?!)"
                    )
        save = False
        calls: dict[str, list[Claim]] = {}
        for claim in wanted:
            state = self._states.get(claim.uid) or ClaimState(claim.uid, claim.name, claim.namespace)
            new = msgspec.structs.replace(
                state,
                pods=state.pods | {pod_uid},
                drivers={**dict.fromkeys(claim.drivers, ()), **state.drivers},
                skip_unprepare=claim.skip_unprepare,
            )
            save |= new != self._states.get(claim.uid)
            self._states[claim.uid] = new
            if not new.prepared:
                for driver in claim.drivers:
                    if driver not in claim.skip_prepare:
                        calls.setdefault(driver, []).append(new.claim)
        return Instructions(save, tuple(Call(driver, tuple(claims)) for driver, claims in calls.items()))

    def prepare_answered(self, call: Call, answer: Mapping[str, PrepareResult]) -> None:
        """A driver answered: its devices are kept even if the answer as a whole is bad; raises PrepareError."""
        asked = {claim.uid: claim for claim in call.claims}
        # In the order of the claims: an answer is a map without one, and the first problem is what people read.
        strangers = sorted(answer.keys() - asked.keys())
        problems = [f"NodePrepareResources returned result for unknown claim UID {uid}" for uid in strangers]
        for uid, result in ((uid, answer[uid]) for uid in asked if uid in answer):
            if result.error:
                problems.append(f"NodePrepareResources failed for ResourceClaim {asked[uid].name}: {result.error}")
            elif uid in self._states:
                state = self._states[uid]
                self._states[uid] = msgspec.structs.replace(
                    state, drivers={**state.drivers, call.driver: result.devices}
                )
        missing = len(asked.keys() - answer.keys())
        if missing:
            problems.append(f"NodePrepareResources skipped {missing} ResourceClaims")
        if problems:
            raise PrepareError(problems[0])

    def prepared(self, wanted: Iterable[WantedClaim]) -> Instructions:
        """All calls for these claims went well."""
        for claim in wanted:
            self._states[claim.uid] = msgspec.structs.replace(self._states[claim.uid], prepared=True)
        return Instructions(save=True)

    def adopt(self, pod_uid: str) -> None:
        """The pod's containers still run after a restart of the agent: its claims count as prepared."""
        for state in self.held_by(pod_uid):
            self._states[state.uid] = msgspec.structs.replace(state, prepared=True)

    # ---- unpreparing ----

    def unprepare(self, pod_uid: str) -> Instructions:
        """A pod's containers have all ended: its hold on shared claims is dropped, the rest is to be unprepared."""
        save = False
        calls: dict[str, list[Claim]] = {}
        for state in self.held_by(pod_uid):
            if state.pods != {pod_uid}:
                self._states[state.uid] = msgspec.structs.replace(state, pods=state.pods - {pod_uid})
                save = True
                continue
            # From now on nobody may take it for prepared, whatever the driver answers.
            self._states[state.uid] = msgspec.structs.replace(state, prepared=False)
            drivers = [driver for driver in state.drivers if driver not in state.skip_unprepare]
            for driver in drivers:
                calls.setdefault(driver, []).append(state.claim)
            if not drivers:
                del self._states[state.uid]
                save = True
        return Instructions(save, tuple(Call(driver, tuple(claims)) for driver, claims in calls.items()))

    def unprepare_answered(self, call: Call, answer: Mapping[str, str]) -> Instructions:
        """A driver answered: claims that no driver holds any more are forgotten; raises PrepareError after that."""
        asked = {claim.uid: claim for claim in call.claims}
        strangers = sorted(answer.keys() - asked.keys())
        problems = [f"NodeUnprepareResources returned result for unknown claim UID {uid}" for uid in strangers]
        done = []
        for uid, error in ((uid, answer[uid]) for uid in asked if uid in answer):
            if error:
                problems.append(f"NodeUnprepareResources failed for ResourceClaim {asked[uid].name}: {error}")
            else:
                done.append(uid)
        for uid in done:
            if uid in self._states:
                state = self._states[uid]
                left = {driver: devices for driver, devices in state.drivers.items() if driver != call.driver}
                if left.keys() - state.skip_unprepare:
                    self._states[uid] = msgspec.structs.replace(state, drivers=left)
                else:
                    del self._states[uid]
        missing = len(asked.keys() - answer.keys())
        if missing:
            problems.append(f"NodeUnprepareResources skipped {missing} ResourceClaims")
        if problems:
            raise UnprepareIncomplete(problems[0], bool(done))
        return Instructions(save=bool(done))


class UnprepareIncomplete(PrepareError):
    """Some claims of a call could not be unprepared; ``changed`` says whether others were."""

    def __init__(self, message: str, changed: bool) -> None:
        super().__init__(message)
        self.changed = changed
