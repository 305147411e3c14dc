"""Measures the allocator: python benchmarks/allocation.py [scale] [fleet] [hard] [events]

Prints one JSON line a case: what one pod costs with the index warm (median, milliseconds); what a pod with a selector
costs that nobody used before, with a warm index and right after it was built (CPU time); building the index (CPU
time), its memory, single events. Beside it stand the target and upstream's figure (Go, on a 2-core machine).
Each repetition allocates for new claim objects: nothing of the pod is kept, what the index has learnt is.
"""

from __future__ import annotations

import copy
import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src"), str(Path(__file__).resolve().parents[1])]

from benchmarks import allocation_scenarios  # noqa: E402
from benchmarks.recording import emit  # noqa: E402
from kubedra.allocation import Allocator, Features, Inventory, Ledger  # noqa: E402
from kubedra.allocation.engine import cel_engine  # noqa: E402
from kubedra.allocation.finder import Finder, Found  # noqa: E402
from kubedra.allocation.scenario import claims_of  # noqa: E402
from kubedra.api.codec import from_tree  # noqa: E402
from kubedra.api.core_v1 import Node  # noqa: E402
from kubedra.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice  # noqa: E402

# case: (target ms, upstream ms)
FIGURES = {
    "scale-5000x8-first": (0.5, 4.1),
    "scale-5000x8-none": (10, 993),
    "scale-5000x8-full": (5, 70),
    "fleet-5000-mixed": (1, 8.9),
    "fleet-5000-numa2": (30, 425),
    "fleet-5000-distinct": (40, 975),
    "fleet-500-mig": (50, 1311),
    "A-22": (50, 4979),
    "B-10": (50, 27345),
    "C-22": (50, 6818),
    "D-22": (50, 11639),
    "E-22": (50, 1081),
    "F-7": (50, 23921),
    "G-12": (50, 9591),
    "H-9": (50, 13763),
}


def generator() -> Any:
    """The recorded generator if it is beside the checkout, else the project's own."""
    for base in Path(__file__).resolve().parents:
        path = base / "shared" / "tools" / "scenarios.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location("scenarios", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return allocation_scenarios


def hard(source: Any, family: str, size: int) -> dict[str, Any]:
    """A hard case of either generator."""
    families = getattr(source, "FAMILIES", None)
    made: dict[str, Any] = families[family](size) if families else source.hard(family, size)
    return made


def memory() -> float:
    """Resident memory of this process in MiB (proportional set size)."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


class World:
    """A scenario's objects and the index over them."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.nodes = [from_tree(Node, t) for t in scenario["nodes"]]
        self.classes = [from_tree(DeviceClass, t) for t in scenario["classes"]]
        self.slices = [from_tree(ResourceSlice, t) for t in scenario["slices"]]
        self.allocated = [from_tree(ResourceClaim, t) for t in scenario.get("allocated") or []]
        gc.collect()
        gc.freeze()
        before = memory()
        start = time.process_time()
        self._build()
        self.index_ms = (time.process_time() - start) * 1000
        gc.collect()
        self.index_mib = memory() - before

    def _build(self) -> None:
        features = Features()
        self.inventory = Inventory(cel_engine(features), features)
        self.ledger = Ledger()
        for node in self.nodes:
            self.inventory.update_node(node)
        for device_class in self.classes:
            self.inventory.update_class(device_class)
        for slice_ in self.slices:
            self.inventory.update_slice(slice_)
        for claim in self.allocated:
            self.ledger.update_claim(claim)
        for node in self.nodes:
            for pool, _ in self.inventory.node_view(node.metadata.name).candidates:
                pool.current(self.ledger)
        self.finder = Finder(Allocator(self.inventory, self.ledger))

    def pod(self, clock: Callable[[], float] = time.perf_counter) -> tuple[float, str]:
        """What one pod costs, and its node."""
        claims = claims_of(self.scenario)
        start = clock()
        finding = self.finder.find(claims)
        spent = (clock() - start) * 1000
        return spent, finding.node if isinstance(finding, Found) else type(finding).__name__


def with_new_selector(scenario: dict[str, Any], number: int) -> list[ResourceClaim]:
    """The claims of a scenario with a selector that means the same and was never seen."""
    trees = copy.deepcopy(scenario["claims"])
    for tree in trees:
        for request in tree["spec"]["devices"]["requests"]:
            for selector in request.get("exactly", {}).get("selectors", []):
                selector["cel"]["expression"] += f" && {number} > 0"
    return claims_of({"claims": trees})


def report(**values: Any) -> None:
    emit("allocation", {k: round(v, 3) if isinstance(v, float) else v for k, v in values.items()})


def measure(scenario: dict[str, Any], repeat: int = 21) -> None:
    world = World(scenario)
    first, node = world.pod(time.process_time)
    times = [world.pod()[0] for _ in range(repeat)]
    strangers = []
    for number in range(1, 6):
        claims = with_new_selector(scenario, number)
        start = time.process_time()
        world.finder.find(claims)
        strangers.append((time.process_time() - start) * 1000)
    target, upstream = FIGURES.get(scenario["name"], (None, None))
    report(
        case=scenario["name"],
        median_ms=statistics.median(times),
        new_selector_cpu_ms=statistics.median(strangers),
        first_pod_cpu_ms=first,
        target_ms=target,
        upstream_ms=upstream,
        index_cpu_ms=world.index_ms,
        index_mib=world.index_mib,
        devices=sum(len(s.spec.devices) for s in world.slices),
        node=node,
    )


def events(source: Any) -> None:
    """One claim event, one changed slice of eight devices, each with the next pod's share of the work."""
    world = World(source.scale(5000, 8, "first"))
    world.pod()
    name = world.nodes[2500].metadata.name
    held = [{"request": "r", "driver": "gpu.example.com", "pool": name, "device": "gpu-0"}]
    tree = {"metadata": {"name": "u", "uid": "u"}, "status": {"allocation": {"devices": {"results": held}}}}
    claim = from_tree(ResourceClaim, tree)
    taken, changed = [], []
    slice_ = world.slices[2500]
    for _ in range(51):
        taken.append(milliseconds(lambda: world.ledger.update_claim(claim)))
        world.pod()
        world.ledger.remove_claim(claim)
        changed.append(milliseconds(lambda: world.inventory.update_slice(slice_)))
        view = milliseconds(lambda: world.inventory.node_view(name))
        changed[-1] += view
        world.pod()
    report(case="one claim event", median_ms=statistics.median(taken), target_ms=0.2)
    report(case="one changed slice of 8 devices", median_ms=statistics.median(changed), target_ms=0.5)


def main(arguments: list[str]) -> None:
    source = generator()
    wanted = arguments or ["scale", "fleet", "hard", "events"]
    if "scale" in wanted:
        for nodes in (1000, 5000):
            for case in ("first", "last", "none", "full", "all8"):
                measure(source.scale(nodes, 8, case))
    if "fleet" in wanted:
        for nodes, case in ((5000, "mixed"), (5000, "numa2"), (5000, "distinct"), (500, "mig")):
            measure(source.fleet(nodes, case))
    if "hard" in wanted:
        for family, size in source.SIZES.items():
            measure(hard(source, family, size))
            measure(hard(source, family, 31 if family == "A" else 2 * size), 5)
    if "events" in wanted:
        events(source)


if __name__ == "__main__":
    main([argument for argument in sys.argv[1:] if argument != "--record"])
