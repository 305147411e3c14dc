"""Which cluster a command speaks to, in this order: --kubeconfig/--context, $KUBECONFIG, the running embedded one,
~/.kube/config, a pod's service account.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from kubedra.cli.output import Refusal
from kubedra.client import kubeconfig
from kubedra.client.kubeconfig import Connection, KubeconfigError

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def default_data_folder() -> Path:
    """Where ``kubedra up`` keeps its cluster unless told otherwise."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "kubedra" / "default"


def embedded_kubeconfig(data: Path | None = None) -> Path | None:
    """The kubeconfig of the embedded cluster, when one runs on that data folder."""
    folder = data or default_data_folder()
    from kubedra.cluster.state import read_state
    from kubedra.node.runtime.identity import is_running

    state = read_state(folder)
    if state is None or not is_running(state.main):
        return None
    path = Path(state.kubeconfig)
    return path if path.exists() else None


@dataclass(frozen=True)
class Target:
    """Options that name a cluster and a namespace."""

    kubeconfig: str | None = None
    context: str = ""
    namespace: str = ""

    def connection(self) -> Connection:
        """The connection; raises Refusal when there is no cluster to speak to."""
        files, where = self._files()
        if not files:
            inside = kubeconfig.in_cluster()
            if inside is None:
                raise Refusal(
                    "there is no cluster to speak to: start one with 'kubedra up', or name one with --kubeconfig"
                )
            found = inside
        else:
            try:
                found = kubeconfig.load(files, self.context)
            except KubeconfigError as error:
                raise KubeconfigError(f"{error} ({where})") from error
        if self.namespace:
            found = replace(found, namespace=self.namespace)
        return found if found.namespace else replace(found, namespace="default")

    def _files(self) -> tuple[list[Path], str]:
        if self.kubeconfig:
            return [Path(self.kubeconfig)], "named by --kubeconfig"
        variable = os.environ.get("KUBECONFIG", "")
        if variable:
            return [Path(p) for p in variable.split(os.pathsep) if p], "named by $KUBECONFIG"
        embedded = embedded_kubeconfig()
        if embedded is not None:
            return [embedded], "the running embedded cluster"
        home = Path.home() / ".kube" / "config"
        return ([home], "~/.kube/config") if home.exists() else ([], "")


def cluster_options(command: F) -> F:
    """Options --kubeconfig, --context and -n; the command takes ``target``."""

    @click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file of the cluster.")
    @click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig.")
    @click.option("-n", "--namespace", default="", metavar="NS", help="Namespace (default: the context's).")
    def wrapper(*args: Any, kubeconfig: str | None, context: str, namespace: str, **kwargs: Any) -> Any:
        return command(*args, target=Target(kubeconfig, context, namespace), **kwargs)

    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    if hasattr(command, "__click_params__"):
        wrapper.__click_params__ = command.__click_params__ + wrapper.__click_params__  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


def run_async(work: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine on uvloop."""
    import asyncio

    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def with_client(target: Target, work: Callable[[Any, Connection], Coroutine[Any, Any, R]]) -> R:
    """Run ``work(client, connection)`` against the target cluster and close the client."""
    from kubedra.client.https import HttpsClient

    connection = target.connection()

    async def call() -> R:
        client = HttpsClient(connection, user_agent="kubedra-cli")
        try:
            return await work(client, connection)
        finally:
            await client.close()

    return run_async(call())


def say_where(connection: Connection) -> None:
    """Every command that writes says to which cluster."""
    click.echo(f"cluster: {connection.context or connection.server} ({connection.server})", err=True)
