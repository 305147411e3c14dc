"""A complete DRA driver: four status lights. See README.md for how to run it."""

from __future__ import annotations

from collections.abc import Sequence

from kubedra.api.resource_v1 import Device
from kubedra.sdk import Allocation, ContainerEdits, PreparedClaim, PreparedDevice, PrepareError, device, run

LIGHTS = {"led-0": "red", "led-1": "yellow", "led-2": "green", "led-3": "blue"}


class LedDriver:
    """Each light is a device; a container with one sees its colour in LED_COLOUR."""

    name = "led.example.com"

    def discover(self) -> list[Device]:
        return [device(name, {"colour": colour}, lumen="120") for name, colour in LIGHTS.items()]

    def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        prepared = []
        for led in allocation.devices:
            if led.device not in LIGHTS:
                raise PrepareError(f"there is no light {led.device}")
            # Parameters of the class come first, those of the claim last: the last one wins.
            mode = next((config["mode"] for config in reversed(led.configs) if "mode" in config), "steady")
            edits = ContainerEdits(env=(f"LED_COLOUR={LIGHTS[led.device]}", f"LED_MODE={mode}"))
            prepared.append(PreparedDevice(edits=edits, data={"mode": mode}))
        return prepared

    def unprepare(self, claim: PreparedClaim) -> None:
        print("off:", ", ".join(led.device for led in claim.devices))


if __name__ == "__main__":
    run(LedDriver())
