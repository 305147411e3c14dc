"""Cleans up after pods that vanished from the API while no agent was looking.

Their containers are stopped, their claims unprepared, their files removed; nothing of it may be given up, since devices
would stay prepared for ever. Upstream counterpart: HandlePodCleanups and the claim manager's reconcile loop (after
60 s there).
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from pathlib import Path

from kubedra.node.claims.resolving import PrepareError
from kubedra.node.pods.services import NodeServices
from kubedra.node.pods.stopping import stop_containers

log = logging.getLogger(__name__)

GRACE_SECONDS = 2.0


def orphans(services: NodeServices, known: Collection[str]) -> frozenset[str]:
    """The uids of pods that left something on this node and are not known any more."""
    pods_dir = services.paths.pods_dir
    folders = {path.name for path in pods_dir.iterdir() if path.is_dir()} if pods_dir.exists() else set()
    devices = {assignment.pod_uid for assignment in services.devices.pool.assignments}
    return frozenset((folders | services.claims.pods() | devices) - set(known))


async def clean_up(services: NodeServices, uid: str) -> None:
    """Removes all that one such pod left; tries until it works."""
    containers = services.runtime.find(uid)
    await stop_containers(containers, GRACE_SECONDS, services.clock)
    delay = services.settings.waits.prepare_retry_first
    while True:
        try:
            await services.claims.unprepare(uid)
            break
        except PrepareError as error:
            log.warning("pod %s is gone, but its claims can't be unprepared yet: %s", uid, error)
        await services.clock.sleep(delay)
        delay = min(delay * 2, services.settings.waits.prepare_retry_last)
    await services.devices.release(uid)
    for container in containers:
        services.runtime.forget(container)
    shutil.rmtree(services.paths.pods_dir / uid, ignore_errors=True)
    for folder in _log_folders(services.paths.log_dir / "pods", uid):
        shutil.rmtree(folder, ignore_errors=True)


def _log_folders(folder: Path, uid: str) -> list[Path]:
    return list(folder.glob(f"*_{uid}")) if folder.exists() else []
