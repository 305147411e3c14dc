"""An API server, scheduler and controllers in a process of their own, for replaying recorded scenarios.

Run as a program: `embedded_control_plane.py DATA_DIR TOKEN`; prints the server's URL once it answers, ends on SIGTERM.
No node lifecycle and no garbage of earlier runs: like the recorded control planes, it is without nodes and drivers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The gates of the recording; the version decides the rest.
GATES = {"DRADeviceTaintRules": False}
VERSION = "1.36"


class ControlPlane:
    """A running control plane; `stop` it."""

    def __init__(self, data_dir: Path, token: str = "admintoken") -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        with (data_dir.parent / f"{data_dir.name}.log").open("w") as log_file:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(data_dir), token],
                stdout=subprocess.PIPE,
                stderr=log_file,
                text=True,
                env=environment,
            )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            log = (data_dir.parent / f"{data_dir.name}.log").read_text()
            raise RuntimeError(f"the control plane did not start: {log[-2000:]}")
        self.port = int(self.url.rsplit(":", 1)[1])

    def stop(self) -> None:
        """End the process."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


async def serve(data_dir: Path, token: str) -> None:
    """Run the parts until SIGTERM."""
    from kubedra.base.features import FeatureGates
    from kubedra.client.clock import RealClock
    from kubedra.controllers.manager import ControllerManager, ControllerSettings
    from kubedra.scheduler.scheduler import Scheduler
    from kubedra.scheduler.settings import SchedulerSettings
    from kubedra.server.in_process import InProcessClient
    from kubedra.server.server import Server
    from kubedra.server.settings import ServerSettings

    gates = FeatureGates(VERSION, GATES)
    server = Server(ServerSettings(data_dir=data_dir, port=0, feature_gates=gates, admin_token=token))
    await server.start()
    clock = RealClock()
    # As in a real cluster, each part has its own identity and no more rights than it needs.
    placing = InProcessClient(server, "system:kube-scheduler", ())
    controlling = InProcessClient(server, "system:kube-controller-manager", ())
    scheduler = Scheduler(placing, SchedulerSettings(feature_gates=gates), clock)
    controllers = ControllerManager(controlling, ControllerSettings(), clock)
    tasks = [asyncio.create_task(scheduler.run()), asyncio.create_task(controllers.run())]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(server.url, flush=True)
    stopping = asyncio.create_task(ended.wait())
    await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    for task in (stopping, *tasks):
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await server.stop()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
