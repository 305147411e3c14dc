"""Puts an embedded cluster together: server, scheduler, controllers and agents in one loop, drivers beside it.

The parts meet here and nowhere else; they talk through the API alone (in process, without sockets). The driver of a
fleet is a process of its own, as drivers are. ``cluster.json`` in the data folder says what runs, by pid, start time
and boot, so that ``down``, ``status`` and the next start never touch a stranger.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubedra.base.clock import Clock
from kubedra.base.features import FeatureGates
from kubedra.client.clock import RealClock
from kubedra.cluster.processes import STOP_SECONDS, end_containers, end_process
from kubedra.cluster.state import STATE_FILE, Running, read_state, write_state
from kubedra.controllers.manager import ControllerManager, ControllerSettings
from kubedra.node.runtime.identity import folder_id, identify
from kubedra.scheduler.scheduler import Scheduler
from kubedra.scheduler.settings import SchedulerSettings
from kubedra.server.in_process import InProcessClient
from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings
from kubedra.wire.paths import default_run_dir, remove_run_dir

log = logging.getLogger(__name__)

FIRST_RESTART_SECONDS = 0.1
LAST_RESTART_SECONDS = 10.0


@dataclass(frozen=True)
class ClusterSettings:
    """What to put together. Without a fleet there is a control plane only."""

    data_dir: Path
    fleet: Path | None = None
    port: int | None = None
    host: str = "127.0.0.1"
    runtime: str = "process"
    run_dir: Path | None = None
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    # Admission plugins of the server beyond the default ones.
    admission: frozenset[str] = frozenset()
    with_driver: bool = True


class PartRefused(Exception):
    """A part can't run and trying again will not help; the text says what a person must do."""


def _is_refusal(error: Exception) -> bool:
    from kubedra.node.claims.checkpoint import CheckpointError
    from kubedra.node.node_lock import NodeTaken
    from kubedra.node.runtime.contract import StartError

    return isinstance(error, CheckpointError | NodeTaken | StartError)


class Cluster:
    """An embedded cluster. ``start`` returns when the API answers, ``ready`` when all is in place."""

    def __init__(self, settings: ClusterSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock: Clock = clock or RealClock()
        self.run_dir = settings.run_dir or default_run_dir(settings.data_dir)
        self.server = Server(
            ServerSettings(
                data_dir=settings.data_dir,
                host=settings.host,
                port=settings.port,
                feature_gates=settings.feature_gates,
                admission=settings.admission,
                # Nobody would ever take the taint from nodes without an agent; people make them to rehearse with.
                taint_all_nodes=False,
            )
        )
        self._fleet = self._read_fleet()
        self._tasks: list[asyncio.Task[None]] = []
        self._clients: list[InProcessClient] = []
        self._driver: asyncio.subprocess.Process | None = None
        self._scheduler: Scheduler | None = None
        self._refused = ""
        # The revision that a cluster continues from; 0 when it is new.
        self._started_at = 0

    def _read_fleet(self) -> Any:
        if self.settings.fleet is None:
            return None
        from kubedra.cluster.nodes import check_paths
        from kubedra.drivers.simulated.fleet import load

        fleet = load(self.settings.fleet)
        check_paths(fleet, self.settings.data_dir, self.run_dir)
        return fleet

    def client(self, user: str = "system:admin", *groups: str) -> InProcessClient:
        """A client of the server in this process."""
        client = InProcessClient(self.server, user, groups or ("system:masters",))
        self._clients.append(client)
        return client

    async def start(self) -> None:
        """Start everything. Raises ``StoreError`` or ``OSError`` when folder or port can't be used."""
        await self.server.start()
        try:
            await self._start_parts()
        except BaseException:
            await self.stop(containers=False)
            raise

    async def _start_parts(self) -> None:
        if self.server.store.count("leases.coordination.k8s.io"):
            self._started_at = self.server.store.revision
        await self._end_old_driver()
        authority = self.settings.data_dir / "pki" / "ca.crt"
        controllers = ControllerSettings(
            ca=authority.read_text() if authority.exists() else "", feature_gates=self.settings.feature_gates
        )
        manager = self.client("system:kube-controller-manager", "system:authenticated")
        self._keep("controllers", lambda: ControllerManager(manager, controllers, self.clock).run())
        scheduler_settings = SchedulerSettings(feature_gates=self.settings.feature_gates)
        scheduler = self.client("system:kube-scheduler", "system:authenticated")

        def schedule() -> Coroutine[Any, Any, None]:
            self._scheduler = Scheduler(scheduler, scheduler_settings, self.clock)
            return self._scheduler.run()

        self._keep("scheduler", schedule)
        if self.server.state is not None:
            # One process, one /metrics: the scheduler's figures stand beside the server's.
            self.server.state.extras["registries"] = self._registries
        if self._fleet is not None:
            from kubedra.cluster.nodes import start_nodes

            nodes = start_nodes(
                self._fleet,
                self.settings.data_dir,
                self.run_dir,
                self.settings.runtime,
                self.settings.feature_gates,
                self.client,
                self.clock,
            )
            for name, run in nodes:
                self._keep(name, run)
            if self.settings.with_driver:
                self._keep("driver", self._run_driver)
        self._save()

    def _save(self) -> None:
        main = identify(os.getpid())
        if main is None or not self.server.url:
            return
        driver = identify(self._driver.pid) if self._driver is not None else None
        state = Running(
            server=self.server.url,
            kubeconfig=str(self.server.kubeconfig_path),
            token_file=str(self.server.token_path()),
            main=main,
            driver=driver,
            fleet=str(self.settings.fleet or ""),
            folder=folder_id(self.settings.data_dir),
        )
        write_state(self.settings.data_dir, state)

    def _registries(self) -> tuple[Any, ...]:
        return (self._scheduler.metrics.registry,) if self._scheduler is not None else ()

    def _keep(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a part; one that fails is told of and started again."""

        async def keep() -> None:
            delay = FIRST_RESTART_SECONDS
            while True:
                started = self.clock.monotonic()
                try:
                    await run()
                except Exception as error:
                    if _is_refusal(error):
                        self._refused = f"{name}: {error}"
                        log.error("%s", self._refused)
                    else:
                        log.exception("%s failed and is started again", name)
                if self.clock.monotonic() - started > 60:
                    delay = FIRST_RESTART_SECONDS
                await self.clock.sleep(delay)
                delay = min(delay * 2, LAST_RESTART_SECONDS)

        self._tasks.append(asyncio.create_task(keep(), name=name))

    async def _end_old_driver(self) -> None:
        """End a driver whose cluster process was killed; it would fight with ours for the sockets."""
        state = read_state(self.settings.data_dir)
        old = state.driver if state is not None else None
        if old is not None:
            await end_process(old, self.clock)

    async def _run_driver(self) -> None:
        """The driver of the fleet as a process of its own, until it ends."""
        logs = self.settings.data_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "kubedra",
            "driver",
            "simulated",
            "--fleet",
            str(self.settings.fleet),
            "--data",
            str(self.settings.data_dir),
            "--run-dir",
            str(self.run_dir),
            "--kubeconfig",
            str(self.server.part_kubeconfig_path("drivers")),
            # A pipe that breaks when this process dies, however it dies: no driver is left that nobody knows of.
            "--end-with-stdin",
        ]
        with (logs / "driver.log").open("ab") as out:
            self._driver = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
            )
        self._save()
        try:
            code = await self._driver.wait()
            log.warning("the driver ended with %s; see %s", code, logs / "driver.log")
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                self._driver.terminate()
            try:
                await asyncio.wait_for(self._driver.wait(), STOP_SECONDS)
            except TimeoutError:
                self._driver.kill()
                await self._driver.wait()
            raise
        finally:
            self._driver = None

    async def ready(self, timeout: float = 60.0) -> None:
        """Wait until all nodes are Ready and all slices of the fleet are published.

        Raises TimeoutError, and PartRefused as soon as a part says that a person must do something first.
        """
        if self._fleet is None:
            return
        from kubedra.cluster.nodes import fleet_is_ready

        client = self.client()
        async with asyncio.timeout(timeout):
            while True:
                if self._refused:
                    raise PartRefused(self._refused)
                asked = self.clock.monotonic()
                if await fleet_is_ready(client, self._fleet, self._started_at):
                    return
                # Looking through thousands of nodes takes its time, which is missing where they start.
                await asyncio.sleep(max(0.02, 5 * (self.clock.monotonic() - asked)))

    async def stop(self, *, containers: bool = True) -> None:
        """Stop every part; with ``containers``, the containers of the nodes too."""
        for task in reversed(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for client in self._clients:
            await client.close()
        await self.server.stop()
        if containers:
            await end_containers(self.settings.data_dir, self.clock)
            remove_run_dir(self.run_dir)
        with contextlib.suppress(OSError):
            (self.settings.data_dir / STATE_FILE).unlink()


@asynccontextmanager
async def running(settings: ClusterSettings, clock: Clock | None = None) -> AsyncIterator[Cluster]:
    """A cluster for the length of a ``with`` block, ready when the block begins."""
    cluster = Cluster(settings, clock)
    await cluster.start()
    try:
        await cluster.ready()
        yield cluster
    finally:
        await cluster.stop()
