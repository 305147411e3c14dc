"""How relations are written down."""

from __future__ import annotations

from kubedra.insight.relations import Section


def test_values_stand_below_each_other_and_never_touch_their_names() -> None:
    section = Section("Pod default/p")
    section.add("Node", "n1")
    section.add("PodScheduled", "True")
    section.add("Container main", "running")
    section.add("Claims", [])
    assert section.render() == [
        "Pod default/p",
        "  Node:         n1",
        "  PodScheduled: True",
        "  Container main: running",
        "  Claims:       <none>",
    ]
