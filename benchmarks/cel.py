"""What selectors cost: compile, first look at a device, a device of a known kind. Prints one JSON object a line.

Run by hand: ``python benchmarks/cel.py``. Figures are medians of repeated runs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from benchmarks.recording import emit
from kubedra import cel
from kubedra.base.features import FeatureGates

_GATES = FeatureGates("1.37")
_SELECTORS = {
    "80Gi": 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0',
    "model": 'device.attributes["gpu.example.com"].model == "Accel-A100"',
    "driver": 'device.driver == "gpu.example.com"',
    "version": 'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("550.0.0"))',
    "guarded": 'has(device.attributes["gpu.example.com"].profile) && '
    'device.attributes["gpu.example.com"].profile == "1g.10gb"',
    "optional": 'device.attributes["gpu.example.com"].?profile.orValue("none") == "none"',
    "four clauses": 'device.driver == "gpu.example.com" && '
    'device.attributes["gpu.example.com"].model == "Accel-A100" && '
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi")) && '
    'device.attributes["gpu.example.com"].numaNode in [0, 1]',
    "regular expression": 'device.attributes["gpu.example.com"].productName.matches("^Accel.*80GB$")',
    "loop": 'device.attributes["gpu.example.com"].exists(k, k == "model")',
}


def _device(index: int) -> cel.DeviceInput:
    tree = {
        "attributes": {
            "model": {"string": "Accel-A100"},
            "productName": {"string": "Accel-A100-SXM4-80GB"},
            "uuid": {"string": f"GPU-{index:08d}"},
            "index": {"int": index},
            "numaNode": {"int": index % 2},
            "driverVersion": {"version": "550.54.15"},
            "migCapable": {"bool": True},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index % 16:02x}"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "multiprocessors": {"value": "108"}},
    }
    return cel.device_input_from_tree("gpu.example.com", tree)


def _median_us(run: Callable[[], object], count: int, rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count * 1e6)
    return round(statistics.median(times), 3)


def main() -> None:
    """Measure and print."""
    devices = [_device(index) for index in range(64)]
    for name, text in _SELECTORS.items():
        selector = cel.compile_selector(text, features=_GATES, version="1.37", stored=True)
        selector.evaluate(devices[0])

        def evaluate_all(selector: cel.CompiledSelector = selector) -> None:
            for device in devices:
                selector.evaluate(device)

        def key_all(selector: cel.CompiledSelector = selector) -> None:
            for device in devices:
                selector.key(device)

        def compile_one(text: str = text) -> None:
            cel.compile_selector(text, features=_GATES, version="1.37", stored=True)

        emit(
            "cel",
            {
                "selector": name,
                "compile_us": _median_us(compile_one, 50),
                "evaluate_us": round(_median_us(evaluate_all, 20) / len(devices), 3),
                "key_us": round(_median_us(key_all, 20) / len(devices), 3),
                "estimated_cost": selector.estimated_cost,
            },
        )
    emit("cel", {"device_conversion_us": _median_us(lambda: _device(3), 200)})


if __name__ == "__main__":
    main()
