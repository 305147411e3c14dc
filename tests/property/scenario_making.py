"""Random allocation scenarios as JSON trees, with real CEL and everything that 1.37 has.

Made from a seed by ``random.Random``, not by hypothesis: thousands cost seconds, and a seed names a scenario for good.
``tame`` scenarios have no selector that fails and one driver only, so that more of them fit.
"""

from __future__ import annotations

from random import Random
from typing import Any

Tree = dict[str, Any]
ATTRIBUTES = 'device.attributes["d"]'
GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADerivedAttributes",
    "DRADeviceBindingConditions",
    "DRADeviceCompatibilityGroups",
    "DRADeviceTaints",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
)
POLICIES: tuple[Tree, ...] = (
    {"default": "1", "validRange": {"min": "1", "step": "1", "max": "3"}},
    {"default": "1", "validRange": {"min": "500m", "step": "500m"}},
    {"default": "2", "validValues": ["2", "4"]},
    {"default": "0", "validRange": {"min": "0"}},
)
TOLERATIONS: tuple[Tree, ...] = (
    {"operator": "Exists"},
    {"key": "t", "operator": "Equal", "value": "v"},
    {"key": "t", "value": "w"},
    {"key": "t", "operator": "Exists", "effect": "NoSchedule"},
)
CLASSES: list[Tree] = [
    {"metadata": {"name": "all"}},
    {
        "metadata": {"name": "d"},
        "spec": {
            "selectors": [{"cel": {"expression": 'device.driver == "d"'}}],
            "config": [{"opaque": {"driver": "d", "parameters": {"a": 1}}}],
        },
    },
]


def _zone(operator: str, *values: str) -> Tree:
    expression = {"key": "zone", "operator": operator, **({"values": list(values)} if values else {})}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


class Maker:
    """Makes one scenario."""

    def __init__(self, seed: int, tame: bool) -> None:
        self._random = Random(seed)
        self._tame = tame
        self._grouped = False
        self.nodes = [
            {"metadata": {"name": f"n{i}", "labels": {"zone": str(i % 2)}}}
            for i in range(self._random.choice([1, 2, 3]))
        ]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def scenario(self) -> Tree:
        """The scenario."""
        pick = self._random
        slices = [s for number in range(pick.randint(1, 3)) for s in self._pool(f"p{number}")]
        pick.shuffle(slices)
        rule = {"deviceSelector": pick.choice([{"driver": "d"}, {"device": "0-0"}, {"pool": "p0"}])}
        return {
            "name": "random",
            "node": "*",
            "nodes": self.nodes,
            "classes": CLASSES,
            "slices": slices,
            "allocated": self._allocated(slices),
            "claims": [self._claim(f"c{number}") for number in range(pick.choice([1, 1, 1, 2]))],
            "taintRules": [
                {"metadata": {"name": "t"}, "spec": {**rule, "taint": {"key": "t", "effect": "NoSchedule"}}}
                for _ in range(self._chance(0.1))
            ],
            "features": {pick.choice(GATES): False} if self._chance(0.2) else {},
        }

    def _where(self) -> Tree:
        choice = self._random.random()
        if choice < 0.5:
            return {"nodeName": self._random.choice(self.nodes)["metadata"]["name"]}
        if choice < 0.7:
            return {"allNodes": True}
        if choice < 0.85:
            return _zone(self._random.choice(["In", "NotIn"]), self._random.choice("01"))
        return {"perDeviceNodeSelection": True}

    def _pool(self, name: str) -> list[Tree]:
        pick, where = self._random, self._where()
        counters, parts = self._chance(0.4), pick.randint(1, 2)
        driver = "d" if self._tame else pick.choice(["d", "d", "e"])
        announced = parts + counters + (pick.choice([-1, 1]) if self._chance(0.05) else 0)
        generation = pick.choice([1, 1, 1, 2])
        pool = {"name": name, "generation": generation, "resourceSliceCount": announced}
        spec: Tree = {"driver": driver, "pool": pool, **where}
        per_device = "perDeviceNodeSelection" in where
        self._grouped = self._chance(0.3)
        slices = []
        for part in range(parts):
            devices = [self._device(f"{part}-{i}", counters, per_device) for i in range(pick.randint(0, 5))]
            skipped = {"skipNodeOperations": ["*"]} if self._chance(0.1) else {}
            slices.append({"metadata": {"name": f"{name}-{part}"}, "spec": {**spec, "devices": devices, **skipped}})
        if counters:
            sets = [
                {"name": "cs", "counters": {"x": {"value": str(pick.randint(1, 6))}}},
                {"name": "cs2", "counters": {"y": {"value": str(pick.randint(0, 2))}}},
            ]
            slices.append({"metadata": {"name": f"{name}-c"}, "spec": {**spec, "sharedCounters": sets}})
        if self._chance(0.1):
            other = {"name": name, "generation": pick.choice([0, 3]), "resourceSliceCount": 1}
            old = {"driver": driver, "pool": other, "nodeName": "n0", "devices": [self._device("old", False, False)]}
            slices.append({"metadata": {"name": f"{name}-old"}, "spec": old})
        return slices

    def _device(self, name: str, counters: bool, per_device: bool) -> Tree:
        pick = self._random
        attributes: Tree = {"c": {"int": pick.randint(0, 2)}}
        if self._chance(0.8):
            values = sorted({pick.randint(0, 2), pick.randint(0, 2)})
            attributes["numa"] = pick.choice([{"int": pick.randint(0, 2)}, {"ints": values}])
        if self._chance(0.85):
            attributes["ok"] = {"bool": self._chance(0.6)}
        if not self._tame and self._chance(0.03):
            attributes["broken"] = {"version": "1.2"}
        if self._chance(0.3):
            attributes["x.y/q"] = {"string": pick.choice("ab")}
        made: Tree = {"name": name if self._chance(0.98) else "0-0", "attributes": attributes}
        if self._chance(0.4):
            made["capacity"] = {"m": {"value": pick.choice(["4", "8", "4500m", "2Gi"])}}
        if self._chance(0.35):
            made["allowMultipleAllocations"] = True
            if "capacity" in made and self._chance(0.6):
                made["capacity"]["m"]["requestPolicy"] = pick.choice(POLICIES)
        if counters and self._chance(0.7):
            made["consumesCounters"] = [{"counterSet": "cs", "counters": {"x": {"value": str(pick.randint(0, 3))}}}]
            if self._grouped and self._chance(0.8):
                made["consumesCounters"][0]["compatibilityGroups"] = pick.choice([["g"], ["h"], ["g", "h"]])
            if self._chance(0.3):
                made["consumesCounters"].append({"counterSet": "cs2", "counters": {"y": {"value": "1"}}})
        if self._chance(0.2):
            effect = pick.choice(["NoSchedule", "NoExecute", "None", "Odd"])
            made["taints"] = [{"key": pick.choice("tu"), "value": "v", "effect": effect}]
        if self._chance(0.05):
            made |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
        if self._chance(0.05):
            made["bindsToNode"] = True
        if per_device:
            made |= pick.choice([{"nodeName": "n0"}, {"allNodes": True}, _zone("Exists")])
        return made

    def _alternative(self, exact: bool) -> Tree:
        pick = self._random
        made: Tree = {"deviceClassName": pick.choice(["all", "d", "d"]), "allocationMode": "ExactCount"}
        if self._chance(0.03 if self._tame else 0.14):
            made["allocationMode"] = "All"
        else:
            made["count"] = pick.choice([1, 1, 1, 2, 2, 3, 4])
        selectors = [f"{ATTRIBUTES}.?c.orValue(9) == 1", f"{ATTRIBUTES}.?ok.orValue(false)", "true"]
        selectors += ["device.allowMultipleAllocations", '"m" in device.capacity["d"]']
        if not self._tame:
            selectors += [f"{ATTRIBUTES}.ok", f"{ATTRIBUTES}.c in [0, 1]"]
        if self._chance(0.5):
            made["selectors"] = [{"cel": {"expression": pick.choice(selectors)}} for _ in range(pick.choice([1, 1, 2]))]
        if self._chance(0.35):
            made["tolerations"] = [pick.choice(TOLERATIONS)]
        if self._chance(0.25):
            made["capacity"] = {"requests": {"m": pick.choice(["1", "2", "1500m", "3", "0", "1Gi"])}}
        if exact and self._chance(0.08):
            made["adminAccess"] = True
        if self._chance(0.3):
            derived = [f"{ATTRIBUTES}.?c.orValue(0)", f"[{ATTRIBUTES}.?c.orValue(0), dyn(5)]"]
            made["derivedAttributes"] = [{"name": "v/a", "expression": pick.choice(derived)}]
        return made

    def _claim(self, name: str) -> Tree:
        pick, requests, names = self._random, [], []
        for number in range(pick.randint(1, 4)):
            label = f"r{number}"
            names.append(label)
            if self._chance(0.7):
                requests.append({"name": label, "exactly": self._alternative(True)})
                continue
            subs = [{"name": f"s{i}", **self._alternative(False)} for i in range(pick.randint(1, 3))]
            names += [f"{label}/{sub['name']}" for sub in subs]
            requests.append({"name": label, "firstAvailable": subs})
        constraints: list[Tree] = []
        for _ in range(pick.choice([0, 0, 1, 1, 2])):
            kind = pick.choice(["matchAttribute", "distinctAttribute"])
            constraint: Tree = {kind: pick.choice(["d/numa", "d/numa", "d/c", "v/a", "x.y/q"])}
            if self._chance(0.5):
                constraint["requests"] = pick.sample(names, min(len(names), pick.randint(1, 3)))
            constraints.append(constraint)
        config = [{"requests": [pick.choice(names)], "opaque": {"driver": "d", "parameters": {"b": 1}}}]
        devices = {"requests": requests, "constraints": constraints, "config": config if self._chance(0.3) else []}
        return {"metadata": {"name": name, "namespace": "x", "uid": f"u-{name}"}, "spec": {"devices": devices}}

    def _allocated(self, slices: list[Tree]) -> list[Tree]:
        found: list[Tree] = []
        for item in slices:
            spec = item["spec"]
            for device in spec.get("devices", []):
                if not self._chance(0.18):
                    continue
                result = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"]}
                result["device"] = device["name"]
                if device.get("allowMultipleAllocations") and self._chance(0.9):
                    consumed = dict.fromkeys(device.get("capacity", {}), "1")
                    result |= {"shareID": f"taken-{len(found)}", "consumedCapacity": consumed}
                if self._chance(0.05):
                    result["adminAccess"] = True
                name = f"a{len(found)}"
                found.append(
                    {
                        "metadata": {"name": name, "namespace": "x", "uid": f"u-{name}"},
                        "status": {"allocation": {"devices": {"results": [result]}}},
                    }
                )
        return found
