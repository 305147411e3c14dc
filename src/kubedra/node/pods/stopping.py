"""Stops containers: the stop signal, the grace period, then the kill. And what is left of pods that are gone.

Upstream counterpart: killContainersWithSyncResult of pkg/kubelet/kuberuntime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubedra.api.core_v1 import Pod
from kubedra.base.clock import Clock
from kubedra.node.runtime.contract import Container

DEFAULT_GRACE = 30


def grace_seconds(pod: Pod) -> float:
    """How long the containers of a pod may take to stop."""
    meta = pod.metadata
    if meta.deletion_timestamp and meta.deletion_grace_period_seconds is not None:
        # A force deletion is remembered as zero; containers still get a moment, as with upstream.
        return max(float(meta.deletion_grace_period_seconds), 1.0)
    seconds = pod.spec.termination_grace_period_seconds
    return float(DEFAULT_GRACE if seconds is None else seconds)


async def stop_containers(containers: Sequence[Container], grace: float, clock: Clock) -> None:
    """Stops containers together and returns when all have ended."""
    running = [container for container in containers if container.exit is None]
    if not running:
        return
    for container in running:
        container.terminate()
    ends = [asyncio.ensure_future(container.wait()) for container in running]
    deadline = asyncio.ensure_future(clock.sleep(grace))
    everything = asyncio.gather(*ends)
    try:
        await asyncio.wait((everything, deadline), return_when=asyncio.FIRST_COMPLETED)
        for container in running:
            if container.exit is None:
                container.kill()
        await everything
    finally:
        deadline.cancel()
        everything.cancel()
