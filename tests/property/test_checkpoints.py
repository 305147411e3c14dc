"""Any sequence of claims survives a restart, and no byte of a checkpoint can change unnoticed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kubedra.cdi.spec import ContainerEdits
from kubedra.sdk.checkpoint import Checkpoint, ClaimRecord, HeldDevice
from kubedra.sdk.driver import AllocatedDevice

words = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)
devices = st.builds(
    HeldDevice,
    allocated=st.builds(
        AllocatedDevice,
        request=words,
        pool=words,
        device=words,
        share_id=st.none() | words,
        configs=st.lists(st.dictionaries(words, st.integers(-9, 9) | words), max_size=2).map(tuple),
    ),
    cdi_ids=st.lists(words, max_size=2).map(tuple),
    edits=st.builds(ContainerEdits, env=st.lists(words, max_size=2).map(tuple)),
)
claims = st.builds(
    ClaimRecord,
    namespace=words,
    name=words,
    uid=st.sampled_from(["a", "b", "c"]),
    state=st.sampled_from(["preparing", "prepared"]),
    devices=st.lists(devices, max_size=3).map(tuple),
)


@given(st.lists(claims | st.sampled_from(["a", "b", "c"]), max_size=8), st.data())
@settings(max_examples=40, deadline=None)
def test_a_checkpoint_is_what_was_put_and_notices_every_change(
    steps: list[ClaimRecord | str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.json"
        expected: dict[str, ClaimRecord] = {}

        async def work() -> None:
            checkpoint = Checkpoint(path, "d")
            checkpoint.load()
            for step in steps:
                if isinstance(step, str):
                    expected.pop(step, None)
                    await checkpoint.drop(step)
                else:
                    expected[step.uid] = step
                    await checkpoint.put(step)

        asyncio.run(work())
        after = Checkpoint(path, "d")
        after.load()
        assert dict(after.claims) == expected and not after.damage
        if not path.exists():
            return
        content = path.read_bytes()
        place = data.draw(st.integers(0, len(content) - 1))
        changed = bytearray(content)
        changed[place] ^= 1 << data.draw(st.integers(0, 6))
        path.write_bytes(changed)
        broken = Checkpoint(path, "d")
        broken.load()
        assert broken.damage or dict(broken.claims) == expected
