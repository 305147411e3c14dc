"""A complete DRA driver: four status lights. See README.md for how to run it."""

from __future__ import annotations

from collections.abc import Sequence

from kubedra.api.resource_v1 import Device
from kubedra.sdk import Allocation, ContainerEdits, PreparedClaim, PreparedDevice, device, run

COLOURS = ("red", "yellow", "green", "blue")


class LedDriver:
    """Each light is a device; a container with one sees its colour in LED_COLOUR."""

    name = "led.example.com"

    def discover(self) -> list[Device]:
        return [device(f"led-{n}", {"colour": colour, "index": n}, lumen="120") for n, colour in enumerate(COLOURS)]

    def prepare(self, allocation: Allocation) -> Sequence[PreparedDevice]:
        prepared = []
        for led in allocation.devices:
            colour = COLOURS[int(led.device.removeprefix("led-"))]
            # Parameters of the class come first, those of the claim last: the last one wins.
            mode = next((config["mode"] for config in reversed(led.configs) if "mode" in config), "steady")
            edits = ContainerEdits(env=(f"LED_COLOUR={colour}", f"LED_MODE={mode}"))
            prepared.append(PreparedDevice(edits=edits, data={"mode": mode}))
        return prepared

    def unprepare(self, claim: PreparedClaim) -> None:
        print("off:", ", ".join(led.device for led in claim.devices))


if __name__ == "__main__":
    run(LedDriver())
