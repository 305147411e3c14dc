"""The command: a cluster on a temporary folder, the eight steps, and nothing left behind."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from kubedra.cli.connect import run_async
from kubedra.cli.demo import steps
from kubedra.cli.demo.story import NAMESPACE, Story, StoryFailed, examples_folder
from kubedra.cli.output import JSON_OUTPUT, Refusal, print_json
from kubedra.client import kubeconfig
from kubedra.client.https import HttpsClient
from kubedra.cluster.state import Running, read_state

OPERATOR_LINES = (
    ("get deviceclasses", "get deviceclasses"),
    ("get resourceslices -A", "get resourceslices -A"),
    ("get resourceclaims -A", "get resourceclaims -A"),
    ("describe resourceclaim shared", "describe resourceclaim shared"),
    ("describe pod too-big", "describe pod too-big"),
)


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running at the end.")
@click.option("--runtime", type=click.Choice(["process", "bwrap"]), default="process", help="How containers run.")
@JSON_OUTPUT
def demo(keep: bool, runtime: str, output: str) -> int:
    """Watch a DRA cluster work, step by step: real API server, scheduler, drivers and processes.

    Every outcome is checked; the first that is wrong ends the demo with exit code 1.
    """
    examples = examples_folder()
    if not (examples / "demo" / "fleet.yaml").exists():
        raise Refusal(f"the example files of the demo are not in {examples}; install kubedra from a full checkout")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Ends as Ctrl-C does: nothing may be left behind.
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    folder = Path(tempfile.mkdtemp(prefix="kubedra-demo-"))
    data = folder / "data"
    began = time.monotonic()
    try:
        outcomes, figures = run_async(_tell(data, examples, runtime, quiet=output == "json"))
        failed = ""
    except StoryFailed as error:
        outcomes, figures, failed = [], {}, str(error)
    finally:
        if not keep:
            subprocess.run(
                [sys.executable, "-m", "kubedra", "down", "--data", str(data)], capture_output=True, check=False
            )
            shutil.rmtree(folder, ignore_errors=True)
    figures["seconds"] = round(time.monotonic() - began, 1)
    if output == "json":
        print_json({"ok": not failed, "error": failed or None, "outcomes": outcomes, **figures})
    elif failed:
        click.echo(f"\nkubedra: the demo failed: {failed}", err=True)
    else:
        click.echo(
            f"\n{len(outcomes)} outcomes checked in {figures['seconds']} s, {figures['pssMiB']} MiB in all processes."
        )
        if keep:
            click.echo(f"The cluster runs on: export KUBECONFIG={data / 'kubeconfig'}")
            click.echo(f"Stop it with: kubedra down --data {data}")
        else:
            click.echo("Nothing is left behind. To keep a cluster: kubedra up --fleet examples/demo/fleet.yaml")
    return 1 if failed else 0


def _start(data: Path, examples: Path, runtime: str) -> Running:
    command = [sys.executable, "-m", "kubedra", "up", "--detach", "--data", str(data), "--runtime", runtime]
    command += ["--fleet", str(examples / "demo" / "fleet.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    state = read_state(data)
    if done.returncode != 0 or state is None:
        raise StoryFailed(f"the cluster did not start: {done.stderr.strip() or done.stdout.strip()}")
    return state


async def _tell(data: Path, examples: Path, runtime: str, *, quiet: bool) -> tuple[list[Any], dict[str, Any]]:
    from kubedra.drivers.simulated.fleet import load

    fleet = load(examples / "demo" / "fleet.yaml")
    began = time.monotonic()
    state = _start(data, examples, runtime)
    ready = round(time.monotonic() - began, 2)
    client = HttpsClient(kubeconfig.load([Path(state.kubeconfig)]), user_agent="kubedra-demo")
    story = Story(client, examples, quiet=quiet)
    story.say(f"A cluster of {len(list(fleet.nodes()))} nodes is ready after {ready} s: {state.server}")
    try:
        for step in (steps.old_way, steps.big_gpu, steps.pairs, steps.deployment, steps.shared):
            await step(story, fleet)
        await steps.too_big(story, fleet, lambda name: _command(state, "why", f"pod/{name}"))
        await steps.freed_device(story, fleet)
        pss = _proportional_mib(data)
        await _crash(story, data, examples, runtime, state)
        await _operator_lines(story, state)
    finally:
        await story.client.close()
    return story.outcomes, {"readySeconds": ready, "pssMiB": pss}


async def _crash(story: Story, data: Path, examples: Path, runtime: str, state: Running) -> None:
    story.step(8, "Every process of the cluster is killed, and it is started again")
    before = await steps.everything(story)
    claims = await steps.allocations(story)
    from kubedra.api import kinds

    pods = (await story.client.list(kinds.POD, NAMESPACE)).items
    containers = steps.container_ids(pods)
    await story.client.close()
    victim = next(p for p in pods if p.metadata.name == "big")
    pids = [*steps.kill(state), *steps.kill_container(data, victim)]
    story.command(f"kill -9 {' '.join(map(str, pids))}")
    began = time.monotonic()
    again = await asyncio.to_thread(_start, data, examples, runtime)
    story.say(f"   ready again after {time.monotonic() - began:.2f} s: {again.server}")
    story.client = HttpsClient(kubeconfig.load([Path(again.kubeconfig)]), user_agent="kubedra-demo")
    await steps.after_the_crash(story, before, claims, containers, "big")


async def _operator_lines(story: Story, state: Running) -> None:
    story.say("")
    story.say(click.style("== What an operator types", bold=True))
    for kubectl, kubedra in OPERATOR_LINES:
        story.command(f"kubectl {kubectl}      # or: kubedra {kubedra}")
        code, text = await _command(state, *kubedra.split())
        lines = text.splitlines()
        for line in lines[:12]:
            story.say(f"   {line}")
        if len(lines) > 12:
            story.say(f"   … {len(lines) - 12} more lines")
        story.check(f"kubedra {kubedra} answers", code == 0, text)


async def _command(state: Running, *arguments: str) -> tuple[int, str]:
    """Run a command of ours against the demo's cluster."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "kubedra",
        *arguments,
        "--kubeconfig",
        state.kubeconfig,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode(errors="replace")


def _proportional_mib(data: Path) -> int:
    """Proportional memory of all processes of the cluster, pods included: those that name the data folder."""
    total = 0
    own = str(data).encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if own not in (folder / "cmdline").read_bytes() and own not in (folder / "environ").read_bytes():
                continue
            for line in (folder / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            continue
    return round(total / 1024)
