"""``kubedra why`` as people and scripts call it: dumps of every form, fleets, exit codes, and what the guide shows."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubedra.api import kinds
from kubedra.api.errors import ApiError
from kubedra.base import yaml
from kubedra.cli.live import read_cluster
from kubedra.cli.output import Refusal
from kubedra.cli.why import why
from kubedra.client.protocol import ListResult, Response
from tests.unit.insight.clusters import Tree, claim, class_of, node, pod, request, slice_of

ROOT = Path(__file__).resolve().parents[3]


def objects(count: int = 1) -> list[Tree]:
    return [
        node("n1"),
        class_of(),
        slice_of("n1", ["a"]),
        claim("x", request("r", count=count)),
        pod("p", "x"),
    ]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(why, arguments, standalone_mode=False, catch_exceptions=False)


def code(result: Result) -> Any:
    return result.return_value


def dump(folder: Path, items: list[Tree], form: str = "json") -> str:
    tree = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
    path = folder / f"dump.{form}"
    path.write_text(json.dumps(tree) if form == "json" else yaml.dump(tree))
    return str(path)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_dump_is_json_or_yaml(tmp_path: Path, form: str) -> None:
    result = run("pod/p", "--dump", dump(tmp_path, objects(count=2), form))
    assert code(result) == 3
    assert "does not fit on the only node" in result.output
    assert code(run("pod", "p", "--dump", dump(tmp_path, objects(), form))) == 0


def test_a_dump_of_an_older_version_is_read(tmp_path: Path) -> None:
    old: Tree = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d.example",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "basic": {"attributes": {"model": {"string": "A"}}}}],
        },
    }
    wanted: Tree = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c", "count": 2}]}},
    }
    items = [node("n1"), class_of(), old, wanted, pod("p", "x")]
    result = run("pod/p", "--dump", dump(tmp_path, items), "-o", "json")
    answer = json.loads(result.output)
    assert answer["fits"] is False
    assert answer["requests"][0]["needed"] == 2
    assert answer["requests"][0]["steps"][0] == {
        "code": "published",
        "text": "",
        "devices": 1,
        "bestNode": "",
        "onBestNode": 1,
    }


def test_lists_of_one_kind_and_single_objects_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    first, *rest = objects(count=2)
    listed = {"apiVersion": "v1", "kind": "NodeList", "items": [{k: v for k, v in first.items() if k != "kind"}]}
    path.write_text("---\n".join(yaml.dump(tree) for tree in (listed, *rest)))
    assert code(run("pod/p", "--dump", str(path))) == 3


def test_a_file_without_objects_says_how_a_dump_is_made(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"kind": "List", "items": []}')
    with pytest.raises(Refusal, match="kubectl get nodes"):
        run("pod/p", "--dump", str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "List", "items": [1]}', "item 0: this is no Kubernetes object"),
        ('{"kind": "List", "items": [{"kind": 3}]}', "item 0: this is no Kubernetes object"),
        ('{"kind": "List", "items": [{"kind": "Pod", "apiVersion": "v1", "spec": 7}]}', "Pod"),
        ('{"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": 7}', "ResourceClaim"),
        ('{"kind": "List", "items": ', "not a JSON object"),
        ("kind: PodList\nitems: [x]\n", "an object is expected here"),
        ("- x\n", "an object is expected here"),
    ],
)
def test_a_broken_dump_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "dump"
    path.write_text(text)
    with pytest.raises(Refusal, match=re.escape(said)):
        run("pod/p", "--dump", str(path))


def test_an_object_that_is_not_there_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="there is no pod 'q' in the namespace default"):
        run("pod/q", "--dump", dump(tmp_path, objects()))


def test_dump_and_fleet_exclude_each_other(tmp_path: Path) -> None:
    import click

    with pytest.raises(click.UsageError):
        run("pod/p", "--dump", "a", "--fleet", "b")


def test_the_guide_shows_what_really_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "how-to" / "why-is-my-pod-pending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n\$ kubedra why ([^\n]*--fleet[^\n]*)\n(.*?)```", text, re.DOTALL)
    assert blocks
    for command, shown in blocks:
        assert run(*shlex.split(command)).output.strip() == shown.strip()


# ---- rights ----


class FewRights:
    """A client that may only read one namespace, and no slices."""

    def __init__(self, items: list[Tree], served: str = "v1") -> None:
        self._items = items
        self._served = served

    async def list(self, kind: kinds.Kind[Any], namespace: str = "") -> ListResult[Any]:
        from kubedra.cli.sources import TYPES, Gathering

        if kind.group == "resource.k8s.io" and self._served != "v1":
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if (kind.namespaced and not namespace) or kind is kinds.RESOURCE_SLICE:
            raise ApiError(403, "Forbidden", f"{kind.plural} is forbidden: may not list at the cluster scope")
        gathering = Gathering()
        for tree in self._items:
            gathering.add_tree(tree, "test")
        return ListResult(tuple(gathering.objects[TYPES[kind.kind][0]]), "1")

    async def request(self, method: str, path: str) -> Response:
        if f"/{self._served}/" not in path:
            return Response(404, {}, b"{}")
        plural = path.rpartition("/")[2]
        found = [t for t in self._items if f"{t['kind'].lower()}{'es' if t['kind'].endswith('s') else 's'}" == plural]
        version = f"resource.k8s.io/{self._served}"
        trees = [{**t, "apiVersion": version} for t in found]
        body = {"kind": f"{found[0]['kind']}List" if found else "List", "apiVersion": version, "items": trees}
        return Response(200, {}, json.dumps(body).encode())


def test_few_rights_give_what_they_allow_and_name_the_rest() -> None:
    found = asyncio.run(read_cluster(FewRights(objects()), "default"))
    assert [p.metadata.name for p in found.pods] == ["p"]
    assert [c.metadata.name for c in found.claims] == ["x"]
    unseen = {u.plural: u.namespace for u in found.unseen}
    assert unseen["pods"] == "default"
    assert unseen["resourceclaims"] == "default"
    assert unseen["resourceslices"] == ""
    assert "forbidden" in next(u.why for u in found.unseen)


def test_a_cluster_that_serves_an_older_version_only_is_read() -> None:
    found = asyncio.run(read_cluster(FewRights(objects(), served="v1beta2"), "default"))
    assert [c.metadata.name for c in found.claims] == ["x"]
    assert [s.metadata.name for s in found.slices] == ["n1-d.example"]
    assert [c.metadata.name for c in found.classes] == ["c"]


def test_json_holds_all_members_that_the_reference_names(tmp_path: Path) -> None:
    answer = json.loads(run("pod/p", "--dump", dump(tmp_path, objects(count=2)), "-o", "json").output)
    page = (ROOT / "docs" / "reference" / "reason-codes.md").read_text(encoding="utf-8")
    for member in ("state", "fits", "reasons", "requests", "constraints", "nodes", "remedies", "cannotHelp", "notSeen"):
        assert member in answer
        assert f"`{member}`" in page
    assert answer["remedies"][0]["verified"] is True
    assert answer["requests"][0]["stoppedBy"]
    assert answer["reasons"][0]["code"] == "too-few-devices"


def test_the_search_for_remedies_can_be_skipped(tmp_path: Path) -> None:
    result = run("pod/p", "--dump", dump(tmp_path, objects(count=2)), "--remedy-seconds", "0", "-o", "json")
    answer = json.loads(result.output)
    assert answer["remedies"] == []
    assert answer["remediesComplete"] is False
