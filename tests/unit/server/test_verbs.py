"""What the verbs promise, seen through a client."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.sdk.lean import decoded_as
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server

Tree = dict[str, Any]


class LeanMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


def config_map(name: str = "a", **metadata: Any) -> Tree:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


async def refused(coroutine: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await coroutine
    return caught.value


async def test_an_object_lives_from_create_to_delete(client: InProcessClient) -> None:
    made = await client.create(kinds.CONFIG_MAP, config_map(), "default")
    assert made.metadata.uid and made.metadata.creation_timestamp and made.data == {"k": "v"}
    assert (await client.get(kinds.CONFIG_MAP, "a", "default")).metadata.uid == made.metadata.uid
    changed = await client.patch(kinds.CONFIG_MAP, "a", {"data": {"k": None, "x": "y"}}, "default")
    assert changed.data == {"x": "y"} and changed.metadata.resource_version != made.metadata.resource_version
    await client.delete(kinds.CONFIG_MAP, "a", "default")
    assert (await refused(client.get(kinds.CONFIG_MAP, "a", "default"))).code == 404


async def test_a_name_can_be_taken_once(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, config_map(), "default")
    error = await refused(client.create(kinds.CONFIG_MAP, config_map(), "default"))
    assert (error.code, error.reason, error.message) == (409, "AlreadyExists", 'configmaps "a" already exists')


async def test_an_update_of_an_old_version_conflicts(client: InProcessClient) -> None:
    made = await client.create(kinds.CONFIG_MAP, config_map(), "default")
    tree = config_map(resourceVersion=made.metadata.resource_version) | {"data": {"k": "1"}}
    await client.update(kinds.CONFIG_MAP, tree, "default")
    error = await refused(client.update(kinds.CONFIG_MAP, tree | {"data": {"k": "2"}}, "default"))
    assert error.reason == "Conflict" and "the object has been modified" in error.message


async def test_a_change_that_changes_nothing_is_no_write(client: InProcessClient, server: Server) -> None:
    await client.create(kinds.CONFIG_MAP, config_map(), "default")
    before = server.store.revision
    await client.patch(kinds.CONFIG_MAP, "a", {"data": {"k": "v"}}, "default")
    assert server.store.revision == before


async def test_objects_need_a_namespace_that_is_there(client: InProcessClient) -> None:
    error = await refused(client.create(kinds.CONFIG_MAP, config_map(), "nowhere"))
    assert (error.code, error.message) == (404, 'namespaces "nowhere" not found')


async def test_a_terminating_namespace_takes_nothing_new(client: InProcessClient) -> None:
    await client.create(kinds.NAMESPACE, {"metadata": {"name": "n"}})
    await client.delete(kinds.NAMESPACE, "n")
    assert (await client.get(kinds.NAMESPACE, "n")).status.phase == "Terminating"
    error = await refused(client.create(kinds.CONFIG_MAP, config_map(), "n"))
    assert error.code == 403 and error.details["causes"][0]["reason"] == "NamespaceTerminating"


async def test_finalizers_hold_an_object_until_the_last_is_gone(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, config_map(finalizers=["example.com/f"]), "default")
    await client.delete(kinds.CONFIG_MAP, "a", "default")
    assert (await client.get(kinds.CONFIG_MAP, "a", "default")).metadata.deletion_timestamp
    await client.patch(kinds.CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, "default")
    assert (await refused(client.get(kinds.CONFIG_MAP, "a", "default"))).code == 404


async def test_a_wrong_precondition_deletes_nothing(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, config_map(), "default")
    error = await refused(client.delete(kinds.CONFIG_MAP, "a", "default", uid="other"))
    assert error.code == 409 and "does not match the UID in record" in error.message


async def test_status_and_spec_do_not_touch_each_other(client: InProcessClient) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    claim = {"metadata": {"name": "c"}, "spec": spec, "status": {"reservedFor": [{"resource": "pods", "name": "x"}]}}
    made = await client.create(kinds.RESOURCE_CLAIM, claim, "default")
    assert made.status.reserved_for == ()
    allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}
    status = {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "x", "uid": "u"}]}
    patch = {"status": status, "metadata": {"labels": {"a": "b"}}}
    changed = await client.patch(kinds.RESOURCE_CLAIM, "c", patch, "default", subresource="status")
    assert changed.status.reserved_for[0].uid == "u" and changed.metadata.labels == {}
    again = await client.patch(kinds.RESOURCE_CLAIM, "c", {"status": None}, "default")
    assert again.status.reserved_for[0].uid == "u"


async def test_a_running_pod_gets_its_grace_period(client: InProcessClient) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}}
    await client.create(kinds.POD, pod, "default")
    await client.delete(kinds.POD, "p", "default", grace_period_seconds=20)
    assert (await client.get(kinds.POD, "p", "default")).metadata.deletion_grace_period_seconds == 20
    await client.delete(kinds.POD, "p", "default", grace_period_seconds=0)
    assert (await refused(client.get(kinds.POD, "p", "default"))).code == 404


async def test_lists_page_through_one_revision(client: InProcessClient) -> None:
    for number in range(5):
        await client.create(kinds.CONFIG_MAP, config_map(f"m{number}", labels={"odd": str(number % 2)}), "default")
    page = await client.list(kinds.CONFIG_MAP, "default", limit=2)
    await client.delete(kinds.CONFIG_MAP, "m3", "default")
    names = [item.metadata.name for item in page.items]
    while page.continue_:
        page = await client.list(kinds.CONFIG_MAP, "default", limit=2, continue_=page.continue_)
        names += [item.metadata.name for item in page.items]
    assert names == ["m0", "m1", "m2", "m3", "m4"]
    odd = await client.list(kinds.CONFIG_MAP, label_selector="odd=1")
    assert [item.metadata.name for item in odd.items] == ["m1"]


async def test_a_limit_below_zero_is_no_limit(client: InProcessClient) -> None:
    for name in "abc":
        await client.create(kinds.CONFIG_MAP, config_map(name), "default")
    page = await client.list(kinds.CONFIG_MAP, "default", limit=-1)
    assert len(page.items) == 3 and not page.continue_


async def test_a_watch_replays_and_follows(client: InProcessClient) -> None:
    start = (await client.list(kinds.CONFIG_MAP)).resource_version
    await client.create(kinds.CONFIG_MAP, config_map("w", labels={"a": "1"}), "default")
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for event in client.watch(kinds.CONFIG_MAP, resource_version=start, label_selector="a=1"):
            seen.append((event.type, event.object.metadata.name))
            if len(seen) == 3:
                return

    following = asyncio.create_task(follow())
    await client.patch(kinds.CONFIG_MAP, "w", {"metadata": {"labels": {"a": "2"}}}, "default")
    await client.patch(kinds.CONFIG_MAP, "w", {"metadata": {"labels": {"a": "1"}}}, "default")
    await asyncio.wait_for(following, 5)
    assert seen == [("ADDED", "w"), ("DELETED", "w"), ("ADDED", "w")]


async def test_unknown_fields_warn_or_refuse(client: InProcessClient) -> None:
    body = b'{"metadata":{"name":"u","name":"u"},"data":{},"dat":1}'
    path = kinds.CONFIG_MAP.path("default")
    strict = await client.request("POST", path, query={"fieldValidation": "Strict"}, body=body)
    assert strict.status == 400
    assert b'strict decoding error: duplicate field \\"metadata.name\\", unknown field \\"dat\\"' in strict.body
    warned = await client.request("POST", path, body=body)
    assert warned.status == 201 and "warning" in warned.headers


async def test_a_user_without_a_role_is_refused(server: Server) -> None:
    alice = InProcessClient(server, "alice", ())
    error = await refused(alice.list(kinds.CONFIG_MAP, "default"))
    assert error.code == 403
    assert error.message.startswith('configmaps is forbidden: User "alice" cannot list resource "configmaps"')
    admin = InProcessClient(server)
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
    }
    await admin.create(kinds.ROLE_BINDING, binding, "default")
    assert (await alice.list(kinds.CONFIG_MAP, "default")).items == ()
    assert (await refused(alice.list(kinds.CONFIG_MAP))).code == 403


async def test_what_was_answered_is_there_after_a_restart(client: InProcessClient, server: Server) -> None:
    made = await client.create(kinds.CONFIG_MAP, config_map(), "default")
    await server.stop()
    again = Server(server.settings)
    await again.start()
    found = await InProcessClient(again).get(kinds.CONFIG_MAP, "a", "default")
    assert found.metadata == made.metadata
    await again.stop()


async def test_events_are_one_storage_with_two_faces(client: InProcessClient) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "kubedra.io/x",
        "reportingInstance": "x",
        "action": "Do",
        "reason": "Because",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "hello",
        "type": "Normal",
    }
    await client.create(kinds.EVENT, event, "default")
    core = await client.get(kinds.CORE_EVENT, "e", "default")
    assert core.message == "hello" and core.involved_object.name == "p"
    found = await client.list(kinds.CORE_EVENT, "default", field_selector="involvedObject.name=p")
    assert len(found.items) == 1


async def test_a_lean_kind_gets_its_own_struct_and_all_readers_share_it(client: InProcessClient) -> None:
    await client.create(kinds.CONFIG_MAP, config_map(), "default")
    lean = decoded_as(kinds.CONFIG_MAP, LeanMap)
    first, second = [await client.get(lean, "a", "default") for _ in range(2)]
    assert isinstance(first, LeanMap) and first is second
    assert (await client.get(kinds.CONFIG_MAP, "a", "default")).metadata.name == "a"
    assert isinstance((await client.list(lean, "default")).items[0], LeanMap)
