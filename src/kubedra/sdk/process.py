"""Runs a driver as a process of its own: the last line of an author's file.

It reads from the environment what differs from place to place, so that the same file serves a kubelet and our agent:
NODE_NAME (required), KUBECONFIG (else the cluster that the pod runs in), and KUBEDRA_DATA (with KUBEDRA_RUN), the data
folder of an embedded cluster; without it the folders of a kubelet are used. Upstream counterpart: the main function
that every driver copies from the example driver.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from kubedra.client.https import HttpsClient
from kubedra.client.kubeconfig import in_cluster, load
from kubedra.sdk.driver import Driver
from kubedra.sdk.plugin import NodePlugin, PluginPaths, PluginSettings
from kubedra.wire.paths import NodePaths, default_run_dir


def run(driver: Driver, settings: PluginSettings | None = None) -> None:
    """Serve ``driver`` until SIGTERM or SIGINT; ``settings`` replaces what the environment says."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(until_signalled(_serve(driver, settings or settings_from_environment(driver.name))))


def settings_from_environment(driver: str) -> PluginSettings:
    """Return where and as what to run; exits with a sentence when NODE_NAME is missing."""
    node = os.environ.get("NODE_NAME", "")
    if not node:
        raise SystemExit("NODE_NAME is not set: say on which node this driver runs")
    data = os.environ.get("KUBEDRA_DATA", "")
    if not data:
        return PluginSettings(node=node, paths=PluginPaths.of_kubelet(driver))
    run_dir = os.environ.get("KUBEDRA_RUN", "")
    paths = NodePaths(Path(data), Path(run_dir) if run_dir else default_run_dir(Path(data)), node)
    return PluginSettings(node=node, paths=PluginPaths.of_node(paths, driver))


async def until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` and cancel it at SIGTERM or SIGINT; it cleans up before this returns."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise


async def _serve(driver: Driver, settings: PluginSettings) -> None:
    files = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    connection = load(files) if files else in_cluster()
    if connection is None:
        raise SystemExit("KUBECONFIG is not set and this is no pod: say where the cluster is")
    client = HttpsClient(connection, user_agent=f"kubedra-sdk/{driver.name}")
    try:
        await NodePlugin(driver, client, settings).run()
    finally:
        await client.close()
