"""What the demo's steps are told with: apply a file, wait for an outcome, show it, check it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import click

from kubedra.api import core_v1, kinds, resource_v1
from kubedra.api.errors import ApiError
from kubedra.cli.apply import apply_document, read_documents, resolve
from kubedra.client.protocol import Client

WAIT_SECONDS = 15.0
NAMESPACE = "default"

Device = tuple[str, str, str]


class StoryFailed(Exception):
    """An outcome was not what it should be; the text says which."""


def examples_folder() -> Path:
    """Where the example files lie: in the package, or in the checkout that it was installed from."""
    inside = Path(__file__).resolve().parents[2] / "examples"
    beside = Path(__file__).resolve().parents[4] / "examples"
    return inside if inside.is_dir() else beside


class Story:
    """Tells steps on standard output and fails at the first outcome that is wrong."""

    def __init__(self, client: Client, examples: Path, *, quiet: bool = False) -> None:
        self.client = client
        self.examples = examples
        self.outcomes: list[dict[str, Any]] = []
        self._quiet = quiet
        self._step = ""

    # ---- telling ----

    def step(self, number: int, title: str) -> None:
        """Begin a step."""
        self._step = f"{number}. {title}"
        self.say("")
        self.say(click.style(f"== {self._step}", bold=True))

    def say(self, text: str) -> None:
        """A line of the story."""
        if not self._quiet:
            click.echo(text)

    def command(self, text: str) -> None:
        """A command that a person would type."""
        self.say(click.style(f"$ {text}", fg="cyan"))

    def check(self, what: str, holds: bool, found: Any = "") -> None:
        """Record an outcome; StoryFailed when it does not hold."""
        self.outcomes.append({"step": self._step, "outcome": what, "ok": holds})
        if not holds:
            raise StoryFailed(f"step {self._step}: this should be so and is not: {what} (found: {found})")
        self.say(f"{click.style('ok', fg='green')}  {what}")

    # ---- doing ----

    async def apply(self, name: str) -> None:
        """Apply an example file."""
        path = self.examples / "demo" / name
        self.command(f"kubedra apply -f examples/demo/{name}")
        for document in read_documents((str(path),)):
            kind = resolve(document)
            namespace = NAMESPACE if kind.namespaced else ""
            verb = await apply_document(self.client, document, kind, namespace, force=False, dry_run=False)
            self.say(f"   {kind.singular}/{document.value['metadata']['name']} {verb}")

    async def until(self, what: str, question: Callable[[], Awaitable[Any]]) -> Any:
        """Ask until there is an answer that counts; StoryFailed after a while."""
        end = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                answer = await question()
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
                answer = None
            if answer:
                return answer
            if time.monotonic() > end:
                raise StoryFailed(f"step {self._step}: waited {WAIT_SECONDS:g} s for this: {what}")
            await asyncio.sleep(0.03)

    async def pod(self, name: str) -> core_v1.Pod:
        """A pod."""
        return await self.client.get(kinds.POD, name, NAMESPACE)

    async def running(self, name: str) -> core_v1.Pod:
        """Wait until a pod runs."""

        async def question() -> core_v1.Pod | None:
            pod = await self.pod(name)
            return pod if pod.status.phase == "Running" else None

        found: core_v1.Pod = await self.until(f"pod {name} runs", question)
        return found

    async def waiting(self, name: str, word: str) -> str:
        """Wait until a pod says why it waits, with a word in it; returns the text."""

        async def question() -> str | None:
            pod = await self.pod(name)
            for condition in pod.status.conditions:
                if condition.type == "PodScheduled" and condition.status == "False" and word in condition.message:
                    return condition.message
            return None

        text: str = await self.until(f"pod {name} waits and says {word!r}", question)
        return text

    async def gone(self, name: str) -> None:
        """Wait until a pod is gone."""

        async def question() -> bool:
            try:
                await self.pod(name)
            except ApiError as error:
                return error.reason == "NotFound"
            return False

        await self.until(f"pod {name} is gone", question)

    async def log(self, name: str, lines: int = 1) -> list[str]:
        """Wait for the first lines that a pod printed."""

        async def question() -> list[str] | None:
            answer = await self.client.request("GET", kinds.POD.path(NAMESPACE, name, "log"))
            found = answer.body.decode(errors="replace").splitlines() if answer.status == 200 else []
            return found if len(found) >= lines else None

        found: list[str] = await self.until(f"pod {name} prints {lines} line(s)", question)
        self.command(f"kubedra logs {name}")
        for line in found:
            self.say(f"   {line}")
        return found

    async def claims(self) -> list[resource_v1.ResourceClaim]:
        """All claims."""
        return list((await self.client.list(kinds.RESOURCE_CLAIM, NAMESPACE)).items)

    async def devices_of(self, pod_name: str) -> list[Device]:
        """The devices that a pod's claims hold."""
        pod = await self.pod(pod_name)
        names = {s.resource_claim_name for s in pod.status.resource_claim_statuses}
        names |= {e.resource_claim_name for e in pod.spec.resource_claims}
        found: list[Device] = []
        for claim in await self.claims():
            if claim.metadata.name in names and claim.status.allocation is not None:
                found += [(r.driver, r.pool, r.device) for r in claim.status.allocation.devices.results]
        return found

    async def attribute(self, devices: Sequence[Device], name: str) -> list[Any]:
        """An attribute of devices, from the slices."""
        table: dict[Device, Any] = {}
        for s in (await self.client.list(kinds.RESOURCE_SLICE)).items:
            for device in s.spec.devices:
                value = device.attributes.get(name)
                if value is not None:
                    plain = value.int_ if value.int_ is not None else value.string
                    table[s.spec.driver, s.spec.pool.name, device.name] = plain
        return [table.get(d) for d in devices]
