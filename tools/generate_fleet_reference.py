"""Writes docs/reference/fleet.md from the table that reads fleet files and from the catalogue of cards.

``--check`` writes nothing and fails when the page is not what would be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from kubedra.drivers.simulated.catalogue import CARDS, VENDORS, Version  # noqa: E402
from kubedra.drivers.simulated.fleet import MOST_NODES, SECTIONS  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "fleet.md"


def page() -> str:
    """Return the text of the page."""
    lines = [
        "# Fleet files",
        "",
        "<!-- Written by tools/generate_fleet_reference.py, do not edit. -->",
        "",
        "A fleet file says which nodes an embedded cluster has and which simulated cards are in them: "
        "`kubedra up --fleet FILE`. Unknown fields are refused. "
        f"At most {MOST_NODES:,} nodes. [The demo's fleet](../../examples/demo/fleet.yaml) is an example.",
    ]
    for section, fields in SECTIONS.items():
        lines += ["", f"## {section}", "", "| Field | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
        lines += [f"| `{field.name}` | {field.type} | {field.default} | {field.meaning} |" for field in fields]
    lines += [
        "",
        "## Vendors",
        "",
        "| Vendor | DRA driver | Extended resource | Variable in containers | Names checked against a driver |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {vendor.name} | `{vendor.driver}` | `{vendor.resource}` | `{vendor.variable}` "
        f"| {'yes' if vendor.verified else 'no: the vendor has none that we could check'} |"
        for vendor in VENDORS.values()
    ]
    lines += [
        "",
        "## Catalogue",
        "",
        "Every card also publishes `resource.kubernetes.io/numaNode`, `resource.kubernetes.io/pcieRoot` and "
        "`resource.kubernetes.io/pciBusID`, and `linkDomain` where it is linked to others. "
        "Values in braces differ from card to card.",
    ]
    for card in CARDS.values():
        lines += ["", f"### {card.name}", "", f"{card.title} ({card.vendor.name})", ""]
        lines += ["| Attribute | Type | Value |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {_kind(value)} | `{_shown(value)}` |" for name, value in card.attributes.items()]
        if card.capacity:
            lines += ["", "| Capacity | Value |", "| --- | --- |"]
            lines += [f"| `{name}` | `{value}` |" for name, value in card.capacity.items()]
    return "\n".join(lines) + "\n"


def _kind(value: object) -> str:
    if isinstance(value, Version):
        return "version"
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) or str(value).startswith("#") else "string"


def _shown(value: object) -> str:
    if isinstance(value, Version):
        return value.value
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "{" + text[1:] + "}" if text.startswith("#") else text


def main() -> int:
    """Write the page, or compare with --check."""
    parser = argparse.ArgumentParser(description="Writes docs/reference/fleet.md.")
    parser.add_argument("--check", action="store_true", help="compare with the committed page, write nothing")
    fresh = page()
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
            print(f"{PAGE.relative_to(ROOT)} is not up to date: run tools/generate_fleet_reference.py", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
