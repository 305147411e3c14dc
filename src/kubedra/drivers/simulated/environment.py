"""What a container sees of its simulated cards: our variables, and those that the vendors' software reads.

Pure. ``KUBEDRA_DEVICE_<REQUEST>_<n>`` names each device as driver/pool/device, so that a script can tell what it got;
the vendor's variable lists the cards of the request, as the vendor's own runtime would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubedra.drivers.simulated.cards import PlacedCard

_NOT_ALLOWED = re.compile(r"[^A-Z0-9_]")


def device_variable(request: str, number: int) -> str:
    """Return ``KUBEDRA_DEVICE_<REQUEST>_<n>``; what an environment name may not hold becomes ``_``."""
    return f"KUBEDRA_DEVICE_{_NOT_ALLOWED.sub('_', request.upper())}_{number}"


def vendor_variables(cards: Sequence[PlacedCard]) -> dict[str, str]:
    """Return each vendor's variable with all of its cards, in order."""
    listed: dict[str, list[str]] = {}
    for card in cards:
        listed.setdefault(card.card.vendor.variable, []).append(card.visible)
    return {variable: ",".join(values) for variable, values in listed.items()}
