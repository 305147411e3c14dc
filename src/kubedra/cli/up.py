"""``kubedra up``, ``down`` and ``status``: the embedded cluster of a data folder."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from kubedra.cli.admission import ADMISSION
from kubedra.cli.connect import default_data_folder, run_async
from kubedra.cli.output import JSON_OUTPUT, Refusal, end_progress, print_json, progress

DATA = click.option(
    "--data",
    type=click.Path(path_type=Path, readable=False),
    default=None,
    metavar="DIR",
    help="Data folder of the cluster.",
)
READY_SECONDS = 120.0
# With less than this a cluster can't even write down why it ended.
LOG_ROOM = 64 << 10


@click.command()
@click.option("--fleet", type=click.Path(path_type=Path), default=None, metavar="FILE", help="Nodes and cards to make.")
@DATA
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port (default 6443, else the next free).")
@click.option("--runtime", type=click.Choice(["process", "bwrap"]), default="process", help="How containers run.")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Feature gates to change.")
@ADMISSION
@click.option("--detach", is_flag=True, help="Return when the cluster is ready; it goes on in the background.")
def up(
    fleet: Path | None,
    data: Path | None,
    port: int | None,
    runtime: str,
    feature_gates: str,
    admission: frozenset[str],
    detach: bool,
) -> None:
    """Start a whole cluster on this machine: API server, controllers, scheduler, and the nodes of a fleet.

    Without a fleet there is a control plane only.
    """
    folder = (data or default_data_folder()).absolute()
    if detach:
        _detach(folder, fleet, port, runtime, feature_gates, admission)
        return
    with contextlib.suppress(KeyboardInterrupt):
        run_async(_serve(folder, fleet, port, runtime, feature_gates, admission))


async def _serve(
    folder: Path, fleet: Path | None, port: int | None, runtime: str, feature_gates: str, admission: frozenset[str]
) -> None:
    import asyncio
    import signal

    from kubedra.base.features import FeatureGates
    from kubedra.cli import heap
    from kubedra.cluster.embedded import Cluster, ClusterSettings, PartRefused
    from kubedra.server.store.errors import StoreError
    from kubedra.wire.paths import SocketPathTooLong

    began = time.monotonic()
    heap.collect_seldom()
    try:
        settings = ClusterSettings(
            data_dir=folder,
            fleet=fleet.absolute() if fleet is not None else None,
            port=port,
            runtime=runtime,
            feature_gates=FeatureGates.parse(feature_gates),
            admission=admission,
        )
        cluster = Cluster(settings)
    except SocketPathTooLong as error:
        raise Refusal(str(error)) from error
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    progress("starting the cluster")
    try:
        await cluster.start()
    except (StoreError, SocketPathTooLong) as error:
        end_progress()
        raise Refusal(str(error)) from error
    try:
        waiting = asyncio.create_task(cluster.ready(READY_SECONDS))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        end_progress()
        if not stop.is_set():
            try:
                await waiting
            except PartRefused as error:
                raise Refusal(str(error)) from error
            except TimeoutError:
                click.echo(f"kubedra: not all nodes and slices are there after {READY_SECONDS:g} s", err=True)
            else:
                click.echo(f"ready in {time.monotonic() - began:.2f} s: {cluster.server.url}")
            click.echo(f"kubeconfig: {cluster.server.kubeconfig_path}")
            click.echo("stop with Ctrl-C" if sys.stdin.isatty() else f"stop with: kubedra down --data {folder}")
            sys.stdout.flush()
            heap.keep_what_is_there()
        await stopping
        waiting.cancel()
    finally:
        progress("stopping the cluster")
        await cluster.stop()
        end_progress()


def _detach(
    folder: Path, fleet: Path | None, port: int | None, runtime: str, feature_gates: str, admission: frozenset[str]
) -> None:
    from kubedra.server.store.errors import StoreError
    from kubedra.server.store.folder import DataFolder

    try:
        # Before anything is written: the folder may be a stranger's.
        DataFolder(folder).check()
    except StoreError as error:
        raise Refusal(str(error)) from error
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log_path = logs / "kubedra.log"
    command = [sys.executable, "-m", "kubedra", "up", "--data", str(folder), "--runtime", runtime]
    for option, value in (
        ("--fleet", fleet),
        ("--port", port),
        ("--feature-gates", feature_gates or None),
        ("--admission", ",".join(sorted(admission)) or None),
    ):
        if value is not None:
            command += [option, str(value)]
    began = time.monotonic()
    start = log_path.stat().st_size if log_path.exists() else 0
    with log_path.open("ab") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=Path.cwd()
        )
    try:
        _await_ready(child, folder, log_path, start, began)
    except BaseException:
        # Whoever gives up waiting must not leave a cluster behind that nobody knows of.
        if child.poll() is None:
            child.terminate()
            child.wait()
        raise


def _await_ready(child: subprocess.Popen[bytes], folder: Path, log_path: Path, start: int, began: float) -> None:
    from kubedra.cluster.state import read_state
    from kubedra.node.runtime.identity import is_running

    while time.monotonic() - began < READY_SECONDS:
        said = log_path.read_bytes()[start:].decode(errors="replace")
        if child.poll() is not None:
            # What it ended with comes last; before that parts may have told of their troubles.
            _, _, last = f"\n{said.strip()}".rpartition("\nkubedra: ")
            text = last if last != f"\n{said.strip()}" else "\n".join(said.strip().splitlines()[-5:])
            if not text and shutil.disk_usage(folder).free < LOG_ROOM:
                text = f"the disk of the data folder {folder} is full; free some space and try again"
            raise Refusal(text or f"the cluster ended at once; see {log_path}")
        if "\nkubeconfig: " in said or said.startswith("kubeconfig: "):
            state = read_state(folder)
            if state is not None and is_running(state.main):
                for line in said.splitlines():
                    if line.startswith(("ready in", "kubeconfig: ", "kubedra: ")):
                        click.echo(line)
                click.echo(f"stop with: kubedra down --data {folder}")
                return
        progress("starting the cluster")
        time.sleep(0.02)
    raise Refusal(f"the cluster is not ready after {READY_SECONDS:g} s; see {log_path}")


@click.command()
@DATA
@JSON_OUTPUT
def down(data: Path | None, output: str) -> None:
    """Stop the cluster of a data folder, its driver and its containers. The data stays."""
    from kubedra.client.clock import RealClock
    from kubedra.cluster.processes import end_containers, end_process
    from kubedra.cluster.state import STATE_FILE, read_state
    from kubedra.node.runtime.identity import is_running
    from kubedra.wire.paths import default_run_dir, remove_run_dir

    folder = (data or default_data_folder()).absolute()
    state = read_state(folder)
    was_running = state is not None and is_running(state.main)

    async def work() -> None:
        clock = RealClock()
        if state is None:
            return
        await end_process(state.main, clock, 30.0)
        if state.driver is not None:
            await end_process(state.driver, clock)
        await end_containers(folder, clock)
        remove_run_dir(default_run_dir(folder))
        (folder / STATE_FILE).unlink(missing_ok=True)

    progress("stopping the cluster")
    run_async(work())
    end_progress()
    if output == "json":
        print_json({"data": str(folder), "stopped": was_running})
    else:
        click.echo(f"stopped: {folder}" if was_running else f"no cluster runs on {folder}")


@click.command()
@DATA
@JSON_OUTPUT
def status(data: Path | None, output: str) -> None:
    """Say whether a cluster runs on a data folder, where it is, and how to reach it. Exit code 3 when none runs."""
    from kubedra.cluster.state import read_state
    from kubedra.node.runtime.identity import is_running

    folder = (data or default_data_folder()).absolute()
    state = read_state(folder)
    alive = state is not None and is_running(state.main)
    found: dict[str, Any] = {"running": alive, "data": str(folder)}
    if state is not None and alive:
        pids = {"main": state.main.pid}
        if state.driver is not None and is_running(state.driver):
            pids["driver"] = state.driver.pid
        found |= {
            "server": state.server,
            "kubeconfig": state.kubeconfig,
            "tokenFile": state.token_file,
            "pids": pids,
            "fleet": state.fleet or None,
        }
    if output == "json":
        print_json(found)
    elif not alive:
        click.echo(f"no cluster runs on {folder}")
    else:
        for name in ("server", "kubeconfig", "tokenFile", "fleet"):
            click.echo(f"{name + ':':<12}{found[name] or '<none>'}")
        click.echo(f"{'processes:':<12}" + ", ".join(f"{n} {p}" for n, p in found["pids"].items()))
    if not alive:
        sys.stdout.flush()
        sys.exit(3)
