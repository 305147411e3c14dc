"""The claim cache: what is asked of drivers, and what is remembered."""

from __future__ import annotations

import msgspec
import pytest

from kubedra.node.claims.cache import Call, ClaimCache, UnprepareIncomplete
from kubedra.node.claims.resolving import PrepareError, WantedClaim
from kubedra.wire.dra import Claim, Device, PrepareResult

GPU = Device(("gpu",), "pool", "dev-0", ("x/y=dev-0",))


def wanted(name: str, *drivers: str, **more: frozenset[str]) -> WantedClaim:
    return WantedClaim(f"uid-{name}", name, "default", drivers or ("gpu.x",), **more)


def claim(name: str) -> Claim:
    return Claim("default", f"uid-{name}", name)


def prepare(cache: ClaimCache, pod: str, *claims: WantedClaim) -> None:
    for call in cache.prepare(pod, claims).calls:
        cache.prepare_answered(call, {asked.uid: PrepareResult((GPU,)) for asked in call.claims})
    cache.prepared(claims)


def test_a_claim_is_written_down_before_its_driver_is_called() -> None:
    cache = ClaimCache()
    instructions = cache.prepare("pod", [wanted("a"), wanted("b")])
    assert instructions.save
    assert instructions.calls == (Call("gpu.x", (claim("a"), claim("b"))),)
    assert [state.drivers for state in cache.states] == [{"gpu.x": ()}, {"gpu.x": ()}]


def test_one_call_per_driver_in_the_order_of_the_claims() -> None:
    calls = ClaimCache().prepare("pod", [wanted("a", "one", "two"), wanted("b", "two")]).calls
    assert calls == (Call("one", (claim("a"),)), Call("two", (claim("a"), claim("b"))))


def test_pods_that_share_a_claim_prepare_it_once() -> None:
    cache = ClaimCache()
    prepare(cache, "first", wanted("a"))
    instructions = cache.prepare("second", [wanted("a")])
    assert instructions.save
    assert instructions.calls == ()
    assert cache.states[0].pods == {"first", "second"}
    again = cache.prepare("second", [wanted("a")])
    assert not again.save


def test_devices_are_replaced_when_a_claim_is_prepared_again_after_a_restart() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a"))
    restarted = ClaimCache(msgspec.structs.replace(state, prepared=False) for state in cache.states)
    prepare(restarted, "pod", wanted("a"))
    assert restarted.devices("default", "a") == (("gpu.x", GPU),)


def test_claims_of_running_containers_are_not_prepared_again_after_a_restart() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a"))
    restarted = ClaimCache(msgspec.structs.replace(state, prepared=False) for state in cache.states)
    restarted.adopt("pod")
    assert restarted.prepare("pod", [wanted("a")]).calls == ()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"uid-a": PrepareResult(error="device is on fire")}, "failed for ResourceClaim a: device is on fire"),
        ({"uid-a": PrepareResult(), "bogus": PrepareResult()}, "returned result for unknown claim UID bogus"),
        ({}, "skipped 1 ResourceClaims"),
    ],
)
def test_bad_answers_have_upstreams_sentences(answer: dict[str, PrepareResult], text: str) -> None:
    cache = ClaimCache()
    (call,) = cache.prepare("pod", [wanted("a")]).calls
    with pytest.raises(PrepareError, match=f"^NodePrepareResources {text}$"):
        cache.prepare_answered(call, answer)
    assert cache.prepare("pod", [wanted("a")]).calls == (call,)


def test_a_claim_of_the_same_name_with_another_uid_has_to_wait() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a"))
    other = WantedClaim("uid-new", "a", "default", ("gpu.x",))
    with pytest.raises(PrepareError, match="old ResourceClaim with same name a and different UID uid-a still exists"):
        cache.prepare("pod-2", [other])


def test_the_last_pod_unprepares() -> None:
    cache = ClaimCache()
    prepare(cache, "first", wanted("a"))
    prepare(cache, "second", wanted("a"))
    dropped = cache.unprepare("first")
    assert dropped.save
    assert dropped.calls == ()
    last = cache.unprepare("second")
    assert last.calls == (Call("gpu.x", (claim("a"),)),)
    assert cache.unprepare_answered(last.calls[0], {"uid-a": ""}).save
    assert cache.states == ()


def test_a_pod_that_never_held_a_claim_can_not_unprepare_it() -> None:
    cache = ClaimCache()
    prepare(cache, "holder", wanted("a"))
    assert cache.unprepare("stranger").calls == ()
    assert cache.devices("default", "a") == (("gpu.x", GPU),)


def test_unprepare_goes_to_all_drivers_and_forgets_at_the_last_answer() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a", "one", "two"))
    one, two = cache.unprepare("pod").calls
    cache.unprepare_answered(one, {"uid-a": ""})
    with pytest.raises(PrepareError, match="NodeUnprepareResources failed for ResourceClaim a: still in use"):
        cache.unprepare_answered(two, {"uid-a": "still in use"})
    (retry,) = cache.unprepare("pod").calls
    assert retry == two
    cache.unprepare_answered(retry, {"uid-a": ""})
    assert cache.states == ()


def test_partial_unprepare_tells_that_something_changed() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a"), wanted("b"))
    (call,) = cache.unprepare("pod").calls
    with pytest.raises(UnprepareIncomplete) as caught:
        cache.unprepare_answered(call, {"uid-a": ""})
    assert str(caught.value) == "NodeUnprepareResources skipped 1 ResourceClaims"
    assert caught.value.changed
    assert [state.name for state in cache.states] == ["b"]


def test_skipped_operations_need_no_driver() -> None:
    cache = ClaimCache()
    every = frozenset({"gpu.x"})
    skipping = wanted("a", skip_prepare=every, skip_unprepare=every)
    assert cache.prepare("pod", [skipping]).calls == ()
    cache.prepared([skipping])
    assert cache.unprepare("pod").calls == ()
    assert cache.states == ()


def test_a_driver_that_was_unprepared_is_written_down_again_before_it_is_called() -> None:
    cache = ClaimCache()
    prepare(cache, "pod", wanted("a", "one", "two"))
    one, _ = cache.unprepare("pod").calls
    cache.unprepare_answered(one, {"uid-a": ""})
    assert cache.states[0].drivers.keys() == {"two"}
    instructions = cache.prepare("other", [wanted("a", "one", "two")])
    assert instructions.save
    assert cache.states[0].drivers.keys() == {"one", "two"}
