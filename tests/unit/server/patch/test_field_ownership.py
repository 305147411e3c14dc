"""Sequences of writes with the owners that must come out."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.api.kinds import Kind
from kubedra.server import patch

Tree = dict[str, Any]


class Life:
    """An object under a sequence of writes, a second apart."""

    def __init__(self, kind: Kind[Any], name: str = "x") -> None:
        self.kind = kind
        self.name = name
        self.tree: Tree | None = None
        self.second = 0

    def _now(self) -> str:
        self.second += 1
        return f"2026-01-01T00:00:{self.second:02d}Z"

    def _named(self, fields: Tree) -> Tree:
        tree = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **copy.deepcopy(fields)}
        tree["metadata"] = {"name": self.name, **tree.get("metadata", {})}
        return tree

    def apply(self, manager: str, fields: Tree, *, force: bool = False, subresource: str = "") -> Life:
        before = copy.deepcopy(self.tree)
        config = self._named(fields)
        frozen = copy.deepcopy(config)
        now = self._now()
        out = patch.apply(self.tree, config, self.kind, manager, now, force=force, subresource=subresource)
        assert (before, frozen) == (self.tree, config)
        return self._store(out)

    def write(self, manager: str, fields: Tree, subresource: str = "") -> Life:
        """A create or a merge patch."""
        new = self._named(fields) if self.tree is None else patch.merge_patch(self.tree, fields)
        before = copy.deepcopy((self.tree, new))
        now = self._now()
        out = patch.update_managed_fields(self.tree, new, self.kind, manager, now, subresource=subresource)
        assert before == (self.tree, new)
        return self._store(out)

    def _store(self, tree: Tree) -> Life:
        tree = copy.deepcopy(tree)
        tree["metadata"]["uid"] = "u"
        self.tree = tree
        return self

    @property
    def owners(self) -> dict[str, Tree]:
        assert self.tree is not None
        return {
            "/".join(filter(None, (e["manager"], e["operation"], e.get("subresource")))): e["fieldsV1"]
            for e in self.tree["metadata"].get("managedFields", [])
        }

    def __getitem__(self, path: str) -> Any:
        value: Any = self.tree
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value.get(part)
        return value


def labels(**values: str) -> Tree:
    return {"metadata": {"labels": values}}


def owned_labels(*names: str) -> Tree:
    return {"f:metadata": {"f:labels": {f"f:{name}": {} for name in names}}}


def config_map() -> Life:
    return Life(kinds.CONFIG_MAP)


def test_what_an_applier_no_longer_states_goes_away() -> None:
    life = config_map().apply("m", {"data": {"a": "1", "b": "2"}}).apply("m", {"data": {"a": "1"}})
    assert life["data"] == {"a": "1"}
    assert life.owners == {"m/Apply": {"f:data": {"f:a": {}}}}


def test_what_somebody_else_states_too_stays() -> None:
    life = config_map().apply("m", {"data": {"a": "1"}}).apply("n", {"data": {"a": "1"}}).apply("m", {})
    assert life["data"] == {"a": "1"}
    assert life.owners == {"n/Apply": {"f:data": {"f:a": {}}}}


def test_what_an_updater_set_afterwards_stays() -> None:
    life = config_map().apply("m", {"data": {"a": "1", "b": "1"}}).write("u", {"data": {"a": "2"}}).apply("m", {})
    assert life["data"] == {"a": "2"}
    assert life.owners == {"u/Update": {"f:data": {"f:a": {}}}}


def test_another_value_is_a_conflict_until_forced() -> None:
    life = config_map().apply("m", {"data": {"a": "1", "b": "1"}})
    with pytest.raises(ApiError) as refused:
        life.apply("n", {"data": {"a": "2"}})
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "m": .data.a'
    assert refused.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m"', "field": ".data.a"}
    ]
    life.apply("n", {"data": {"a": "2"}}, force=True)
    assert life.owners == {"m/Apply": {"f:data": {"f:b": {}}}, "n/Apply": {"f:data": {"f:a": {}}}}


def test_conflicts_are_told_by_manager() -> None:
    life = config_map().apply("m", {"data": {"a": "1", "b": "1"}}).write("u", {"data": {"c": "1"}})
    with pytest.raises(ApiError) as refused:
        life.apply("n", {"data": {"a": "2", "b": "2", "c": "2"}})
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "m":\n- .data.a\n- .data.b\n'
        'conflicts with "u" using v1:\n- .data.c'
    )


def test_an_object_without_owners_belongs_to_before_first_apply() -> None:
    life = config_map().write("u", {"data": {"a": "1"}})
    life.write("u", {"metadata": {"managedFields": [{}]}})
    assert life.owners == {}
    life.write("u", {"data": {"b": "1"}})
    assert life.owners == {}, "tracking starts with the first apply"
    life.apply("m", {"data": {"c": "1"}})
    assert life.owners == {
        "m/Apply": {"f:data": {"f:c": {}}},
        "before-first-apply/Update": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


def test_a_write_that_changes_nothing_keeps_the_very_list() -> None:
    life = config_map().write("u", {"data": {"a": "1"}})
    assert life.tree is not None
    entries = life.tree["metadata"]["managedFields"]
    new = {**life.tree, "metadata": {k: v for k, v in life.tree["metadata"].items() if k != "managedFields"}}
    out = patch.update_managed_fields(life.tree, new, life.kind, "other", "2026-01-02T00:00:00Z")
    assert out["metadata"]["managedFields"] is entries


def test_an_apply_that_changes_nothing_keeps_the_time() -> None:
    life = config_map().apply("m", {"data": {"a": "1"}})
    before = life["metadata.managedFields"]
    assert life.apply("m", {"data": {"a": "1"}})["metadata.managedFields"] == before


def test_a_new_owner_of_an_unchanged_value_has_no_time() -> None:
    life = config_map().apply("m", {"data": {"a": "1"}}).apply("n", {"data": {"a": "1"}})
    assert [(e["manager"], "time" in e) for e in life["metadata.managedFields"]] == [("n", False), ("m", True)]


def test_nobody_owns_what_the_server_sets() -> None:
    life = config_map().write("u", {"metadata": {"labels": {"a": "1"}, "generation": 3, "finalizers": ["a/b"]}})
    assert life.owners == {
        "u/Update": {
            "f:metadata": {"f:finalizers": {".": {}, 'v:"a/b"': {}}, "f:labels": {".": {}, "f:a": {}}},
        }
    }


def test_rubbish_in_managed_fields_is_ignored_and_a_rewrite_is_taken() -> None:
    life = config_map().apply("m", {"data": {"a": "1"}})
    before = life.owners
    life.write("u", {"metadata": {"managedFields": [{"manager": "z", "operation": "Nope"}]}})
    assert life.owners == before
    entry = {
        "manager": "z",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    life.write("u", {"metadata": {"managedFields": [entry]}})
    assert life.owners == {"z/Apply": {"f:data": {"f:a": {}}}}


def test_at_most_ten_updaters_are_remembered() -> None:
    life = config_map()
    for n in range(14):
        life.write(f"u{n:02d}", {"data": {f"k{n}": "1"}})
    owners = life.owners
    assert len(owners) == 10
    assert owners["ancient-changes/Update"]["f:data"].keys() == {".", "f:k0", "f:k1", "f:k2", "f:k3", "f:k4"}


def test_list_items_have_owners_of_their_own() -> None:
    pod = Life(kinds.POD)
    pod.apply("m", {"spec": {"containers": [{"name": "a", "image": "i"}]}})
    pod.apply("n", {"spec": {"containers": [{"name": "b", "image": "i", "ports": [{"containerPort": 80}]}]}})
    assert [c["name"] for c in pod["spec.containers"]] == ["a", "b"]
    assert pod.owners["n/Apply"] == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"b"}': {
                    ".": {},
                    "f:image": {},
                    "f:name": {},
                    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                }
            }
        }
    }
    pod.apply("n", {"spec": {"containers": [{"name": "a"}]}})
    assert [c["name"] for c in pod["spec.containers"]] == ["a"]


def test_a_created_pod_belongs_to_its_creator_without_the_structs_on_the_way() -> None:
    pod = Life(kinds.POD).write("u", {"spec": {"containers": [{"name": "a", "resources": {}}], "hostNetwork": True}})
    assert pod.owners == {
        "u/Update": {
            "f:spec": {
                "f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:resources": {}}},
                "f:hostNetwork": {},
            }
        }
    }


def test_each_endpoint_owns_its_half() -> None:
    claim = Life(kinds.RESOURCE_CLAIM)
    status = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u1"}]}
    claim.apply("m", {"spec": {"devices": {"requests": []}}, "status": status})
    assert "f:status" not in claim.owners["m/Apply"]
    change = {
        "status": {"devices": None, "reservedFor": [{"resource": "pods", "name": "q", "uid": "u1"}]},
        "spec": {"devices": {"config": []}},
        **labels(a="1"),
    }
    claim.write("s", change, subresource="status")
    assert claim.owners["s/Update/status"] == {"f:status": {"f:reservedFor": {'k:{"uid":"u1"}': {"f:name": {}}}}}


def test_an_added_struct_is_owned_with_its_fields() -> None:
    claim = Life(kinds.RESOURCE_CLAIM).write("u", {"spec": {"devices": {"requests": [{"name": "r"}]}}})
    claim.write("s", {"status": {"allocation": {"devices": {"results": [{"device": "d"}]}}}}, subresource="status")
    allocation = {".": {}, "f:devices": {".": {}, "f:results": {}}}
    assert claim.owners["s/Update/status"] == {"f:status": {"f:allocation": allocation}}


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    life = config_map().write(
        "kubectl-client-side-apply", {"data": {"a": "1"}, "metadata": {"annotations": annotations}}
    )
    life.apply("kubectl", {"data": {"a": "2"}})
    assert life["data"] == {"a": "2"}
    written = life["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert '"a":"2"' in written
    with pytest.raises(ApiError):
        life.apply("another", {"data": {"a": "3"}})


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        ({"kind": "ConfigMap"}, 400, "invalid object type: /, Kind=ConfigMap"),
        ({"apiVersion": "apps/v1", "kind": "ConfigMap"}, 400, "invalid object type: apps/v1, Kind=ConfigMap"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "zap": 1},
            500,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .zap: field not declared in schema",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "data": "y"},
            500,
            "failed to create typed patch object (n/x; /v1, Kind=ConfigMap): .data: expected map, got &{y}",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["a", "a"]}},
            500,
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): "
            '.metadata.finalizers: duplicate entries for key [="a"]',
        ),
    ],
)
def test_a_config_that_does_not_fit_is_refused(config: Tree, code: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        patch.apply(None, config, kinds.CONFIG_MAP, "m", "2026-01-01T00:00:00Z")
    assert (refused.value.code, refused.value.message) == (code, message)


def test_a_change_of_times_alone_is_no_change() -> None:
    life = config_map().write("u", {"data": {"a": "1"}})
    assert life.tree is not None
    entry = {**life["metadata.managedFields"][0], "time": "2027-01-01T00:00:00Z"}
    new = {**life.tree, "metadata": {**life.tree["metadata"], "managedFields": [entry]}}
    assert patch.without_time_changes(life.tree, new) == life.tree
    other = {**entry, "manager": "v"}
    new = {**life.tree, "metadata": {**life.tree["metadata"], "managedFields": [other]}}
    assert patch.without_time_changes(life.tree, new) is new


def test_owners_in_other_versions_are_looked_at_in_their_version() -> None:
    new_version = kinds.lookup("resource.k8s.io", "v1", "DeviceClass")
    old_version = kinds.lookup("resource.k8s.io", "v1beta1", "DeviceClass")
    assert new_version is not None and old_version is not None
    life = Life(new_version).apply("m", {"metadata": {"labels": {"a": "1"}}})
    assert life.tree is not None
    as_old = {**life.tree, "apiVersion": old_version.api_version}
    config = {
        "apiVersion": old_version.api_version,
        "kind": "DeviceClass",
        "metadata": {"name": "x", **labels(a="2")["metadata"]},
    }
    with pytest.raises(ApiError) as refused:
        patch.apply(as_old, config, old_version, "n", "2026-01-02T00:00:00Z")
    assert ".metadata.labels.a" in refused.value.message
    out = patch.apply(as_old, config, old_version, "n", "2026-01-02T00:00:00Z", force=True)
    assert [(e["manager"], e["apiVersion"]) for e in out["metadata"]["managedFields"]] == [
        ("n", "resource.k8s.io/v1beta1")
    ]
    # The same applier in another version gives up what it stated before.
    config = {**config, "metadata": {"name": "x"}}
    out = patch.apply(as_old, config, old_version, "m", "2026-01-02T00:00:00Z")
    assert "labels" not in out["metadata"]
    assert "managedFields" not in out["metadata"]
