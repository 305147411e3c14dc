"""Quantities as published objects carry them, where a text that is none must not stop the cluster.

The API server refuses such texts, so they only come from dumps and hand-written scenarios. What can't be read counts
as nothing where it is offered and as more than there can be where it is needed: the device is then never handed out.
"""

from __future__ import annotations

from kubedra.base.quantity import Quantity, QuantityError

NOTHING = Quantity(0)
ENDLESS = Quantity(10**60)


def offered(text: str | None) -> Quantity:
    """An amount that there is."""
    try:
        return Quantity.parse(text or "0")
    except QuantityError:
        return NOTHING


def needed(text: str | None) -> Quantity:
    """An amount that something takes."""
    try:
        return Quantity.parse(text or "0")
    except QuantityError:
        return ENDLESS
