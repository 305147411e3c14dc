"""Each part of a cluster as a process of its own: ``kubedra server | scheduler | controllers | agent | driver …``.

They need nothing of each other but the API, so each can run against a real cluster too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import click

from kubedra.cli.admission import ADMISSION
from kubedra.cli.connect import Target, cluster_options, default_data_folder, run_async, say_where
from kubedra.cli.output import Refusal, nearest

GATES = click.option("--feature-gates", default="", metavar="A=true,B=false", help="Feature gates to change.")
DATA = click.option(
    "--data", type=click.Path(path_type=Path, readable=False), default=None, metavar="DIR", help="Data folder."
)
RUN_DIR = click.option(
    "--run-dir", type=click.Path(path_type=Path), default=None, metavar="DIR", help="Short folder for sockets."
)


def _serve(part: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a part until a signal ends it; a refusal is one sentence."""
    from kubedra.cli import heap
    from kubedra.server.store.errors import StoreError
    from kubedra.wire.paths import SocketPathTooLong

    heap.collect_seldom()

    async def work() -> None:
        task = asyncio.ensure_future(part())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        run_async(work())
    except (StoreError, SocketPathTooLong) as error:
        raise Refusal(str(error)) from error


def _end_with_stdin() -> None:
    """Cancel this task when whoever holds the other end of standard input is gone."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            if task is not None:
                task.cancel()

    loop.add_reader(0, readable)


def _gates(text: str) -> Any:
    from kubedra.base.features import FeatureGates

    return FeatureGates.parse(text)


def _client(target: Target, part: str) -> Any:
    from kubedra.client.https import HttpsClient

    connection = target.connection()
    say_where(connection)
    return HttpsClient(connection, user_agent=f"kubedra-{part}")


@click.command()
@DATA
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port (default 6443, else the next free).")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@ADMISSION
@click.option("--admin-token", default="", metavar="TOKEN", help="Bearer token of the administrator (default: made).")
@GATES
def server(
    data: Path | None, port: int | None, host: str, admission: frozenset[str], admin_token: str, feature_gates: str
) -> None:
    """Run the API server alone."""
    from kubedra.server.server import Server
    from kubedra.server.settings import ServerSettings

    settings = ServerSettings(
        data_dir=(data or default_data_folder()).absolute(),
        host=host,
        port=port,
        feature_gates=_gates(feature_gates),
        admission=admission,
        admin_token=admin_token,
    )

    async def part() -> None:
        instance = Server(settings)
        await instance.start()
        click.echo(f"serving {instance.url}\nkubeconfig: {instance.kubeconfig_path}")
        try:
            await asyncio.Event().wait()
        finally:
            await instance.stop()

    _serve(part)


@click.command()
@click.option(
    "--metrics-port", type=click.IntRange(1, 65535), default=None, help="Serve /metrics on this loopback port."
)
@GATES
@cluster_options
def scheduler(metrics_port: int | None, feature_gates: str, target: Target) -> None:
    """Run the scheduler alone."""
    from kubedra.scheduler.scheduler import Scheduler
    from kubedra.scheduler.settings import SchedulerSettings

    gates = _gates(feature_gates)

    async def part() -> None:
        client = _client(target, "scheduler")
        try:
            instance = Scheduler(client, SchedulerSettings(feature_gates=gates))
            if metrics_port is not None:
                from prometheus_client import start_http_server

                start_http_server(metrics_port, addr="127.0.0.1", registry=instance.metrics.registry)
            await instance.run()
        finally:
            await client.close()

    _serve(part)


@click.command()
@click.option("--node-grace", default=40.0, metavar="SECONDS", help="How long a node may be silent.")
@GATES
@cluster_options
def controllers(node_grace: float, feature_gates: str, target: Target) -> None:
    """Run the controllers alone."""
    from kubedra.client.clock import RealClock
    from kubedra.controllers.manager import ControllerManager, ControllerSettings

    async def part() -> None:
        client = _client(target, "controllers")
        ca = client.connection.ca
        settings = ControllerSettings(
            ca=ca.decode() if ca else "", node_grace_seconds=node_grace, feature_gates=_gates(feature_gates)
        )
        try:
            await ControllerManager(client, settings, RealClock()).run()
        finally:
            await client.close()

    _serve(part)


@click.command()
@click.option("--node", required=True, metavar="NAME", help="Name of the node.")
@DATA
@RUN_DIR
@click.option("--runtime", type=click.Choice(["process", "bwrap"]), default="process", help="How containers run.")
@click.option("--address", default="127.0.0.1", help="Address that the node publishes.")
@click.option("--cpu", default="", help="CPUs to offer (default: this machine's).")
@click.option("--memory", default="", help="Memory to offer (default: this machine's).")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of the node.")
@cluster_options
def agent(
    node: str,
    data: Path | None,
    run_dir: Path | None,
    runtime: str,
    address: str,
    cpu: str,
    memory: str,
    labels: tuple[str, ...],
    target: Target,
) -> None:
    """Run the agent of one node alone."""
    from kubedra.node.agent import Agent
    from kubedra.node.settings import AgentSettings
    from kubedra.wire.paths import default_run_dir

    folder = (data or default_data_folder()).absolute()
    pairs = [label.partition("=") for label in labels]
    settings = AgentSettings(
        node=node,
        data_dir=folder,
        run_dir=run_dir or default_run_dir(folder),
        runtime=runtime,
        address=address,
        cpu=cpu,
        memory=memory,
        labels={key: value for key, _, value in pairs},
    )

    async def part() -> None:
        client = _client(target, "agent")
        try:
            await Agent(client, settings).run()
        finally:
            await client.close()

    _serve(part)


@click.group()
def driver() -> None:
    """Run a driver alone."""


@driver.command()
@click.option("--fleet", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Nodes and their cards.")
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="Serve only this node of the fleet.")
@DATA
@RUN_DIR
@click.option("--end-with-stdin", is_flag=True, hidden=True, help="End when standard input does.")
@cluster_options
def simulated(
    fleet: Path, nodes: tuple[str, ...], data: Path | None, run_dir: Path | None, end_with_stdin: bool, target: Target
) -> None:
    """Serve the simulated cards of a fleet, through DRA drivers and device plugins."""
    from kubedra.client.clock import RealClock
    from kubedra.drivers.simulated.fleet import load
    from kubedra.drivers.simulated.service import SimulatedDriver, SimulatedDriverSettings
    from kubedra.wire.paths import default_run_dir

    folder = (data or default_data_folder()).absolute()
    described = load(fleet)
    known = [name for name, _ in described.nodes()]
    for name in nodes:
        if name not in known:
            raise Refusal(f"{fleet} has no node {name!r}{nearest(name, known)}")
    settings = SimulatedDriverSettings(
        fleet=described,
        data_dir=folder,
        run_dir=run_dir or default_run_dir(folder),
        nodes=frozenset(nodes),
    )
    # What a driver says is read with `kubedra logs driver/NODE`: who registered it, what it prepared.
    logging.getLogger("kubedra").setLevel(min(logging.INFO, logging.getLogger().level))

    async def part() -> None:
        client = _client(target, "driver")
        if end_with_stdin:
            _end_with_stdin()
        try:
            await SimulatedDriver(client, settings, RealClock()).run()
        finally:
            await client.close()

    _serve(part)
