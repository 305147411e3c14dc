"""Starts supervisors and finds them again: the part that the process and the bwrap runtime share.

One folder per container attempt, ``<pods>/<uid>/containers/<name>/<attempt>/``: ``config.json`` (what it is),
``spec`` (for the supervisor; deleted at the end because it holds the environment, and with it secrets),
``supervisor`` (identity, written here before the supervisor may go on), ``child`` and ``exit`` (written by the
supervisor). A folder without ``supervisor`` never ran anything. The agent holds gRPC, so it never forks by itself:
subprocess without preexec_fn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import py_compile
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from kubedra.node.runtime.contract import ContainerConfig, ContainerExit, StartError
from kubedra.node.runtime.identity import (
    ID_VARIABLE,
    ProcessIdentity,
    folder_id,
    identify,
    kill_marked,
    open_handle,
    send_signal,
)

START_TIMEOUT = 30.0
LOST_REASON = "ContainerStatusUnknown"
COPIED = "this node folder is a copy; the container runs, if it does, for the folder that was copied"


class Spec(msgspec.Struct, frozen=True):
    """What the supervisor is told beyond the config: the runtime's own translation of it."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    depth: int = 0
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()


class Supervisor(ProcessIdentity, frozen=True):
    """What ``supervisor`` holds: who it is, and for which folder."""

    folder: str = ""


class SupervisedContainer:
    """A container under a supervisor."""

    def __init__(self, folder: Path, config: ContainerConfig) -> None:
        self.folder = folder
        self._config = config
        self._identity: ProcessIdentity | None = None
        self._handle: int | None = None
        self._started = ""
        self._exit: ContainerExit | None = None
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        state = f"exited {self._exit.code}" if self._exit else "running"
        return f"<container {self._config.pod_name}/{self._config.name}#{self._config.attempt} {state}>"

    @property
    def config(self) -> ContainerConfig:
        """What it was started with."""
        return self._config

    @property
    def started(self) -> str:
        """When its command was started."""
        return self._started

    @property
    def exit(self) -> ContainerExit | None:
        """How it ended; None while it runs."""
        return self._exit

    @property
    def child(self) -> ProcessIdentity | None:
        """The first process below the supervisor."""
        record = read_record(self.folder / "child")
        if not record or self._identity is None:
            return None
        return ProcessIdentity(int(record["pid"]), record["start"], self._identity.boot)

    async def wait(self) -> ContainerExit:
        """Waits for the end."""
        await self._ended.wait()
        assert self._exit is not None
        return self._exit

    def terminate(self) -> bool:
        """Asks the command to stop."""
        return self._signal(signal.SIGTERM)

    def kill(self) -> bool:
        """Kills the command."""
        return self._signal(signal.SIGUSR1)

    def _signal(self, number: int) -> bool:
        return self._exit is None and self._identity is not None and send_signal(self._identity, number)

    def attach(self, identity: ProcessIdentity) -> None:
        """Watches the supervisor, or settles how the container ended if it is gone."""
        self._identity = identity
        record = read_record(self.folder / "child")
        self._started = record.get("time", self._config.created)
        self._handle = open_handle(identity)
        if self._handle is None:
            self._settle()
        else:
            asyncio.get_running_loop().add_reader(self._handle, self._supervisor_ended)

    def disown(self) -> None:
        """Takes the container for ended: this folder is a copy, and what runs belongs to its original."""
        self._exit = self._recorded() or ContainerExit(137, message=COPIED, reason=LOST_REASON)
        self._ended.set()

    def detach(self) -> None:
        """Stops watching; the container runs on."""
        if self._handle is not None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _supervisor_ended(self) -> None:
        self.detach()
        self._settle()

    def _settle(self) -> None:
        assert self._identity is not None
        # Reaps it where it is our child; after a restart of the agent it is init's.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._identity.pid, os.WNOHANG)
        self._exit = self._recorded() or self._lost()
        (self.folder / "spec").unlink(missing_ok=True)
        self._ended.set()

    def _recorded(self) -> ContainerExit | None:
        """How it ended, as its supervisor wrote it down."""
        record = read_record(self.folder / "exit")
        if not record:
            return None
        return ContainerExit(int(record["code"]), int(record["signal"]), record["finished"], record.get("message", ""))

    def _lost(self) -> ContainerExit:
        """The supervisor was killed (or the machine restarted): what it left is ended, how it ended is not known."""
        child = self.child
        if child is not None:
            send_signal(child, signal.SIGKILL)
        kill_marked(self._config.id)
        return ContainerExit(
            137, message="the supervisor of this container is gone, its exit code is not known", reason=LOST_REASON
        )


class Launcher:
    """Starts supervisors in folders below ``pods_dir`` and finds them again."""

    def __init__(self, pods_dir: Path, log_limit: int) -> None:
        self._pods_dir = pods_dir
        self._log_limit = log_limit
        self._program: Path | None = None
        self._watched: list[SupervisedContainer] = []

    def folder(self, config: ContainerConfig) -> Path:
        """Where a container attempt is written down."""
        return self._pods_dir / config.pod_uid / "containers" / config.name / str(config.attempt)

    def _compiled(self) -> Path:
        # Running the source would keep the compiler's memory in every supervisor: 1.1 MB each.
        if self._program is None:
            target = self._pods_dir / f".supervisor.{sys.implementation.cache_tag}.pyc"
            self._pods_dir.mkdir(parents=True, exist_ok=True)
            source = Path(__file__).with_name("supervisor.py")
            py_compile.compile(str(source), str(target), doraise=True, optimize=2)
            self._program = target
        return self._program

    async def launch(self, config: ContainerConfig, spec: Spec) -> SupervisedContainer:
        """Starts a supervisor and returns once the command was executed; raises StartError."""
        folder = self.folder(config)
        try:
            process = self._spawn(folder, config, spec)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StartError(f"container {config.name}: {error.strerror}: {error.filename}") from error
        assert process.stdin is not None and process.stdout is not None
        # Ours to reap, by pid: it is meant to outlive this object, which must not complain about that.
        process.returncode = 0
        identity = identify(process.pid)
        container = SupervisedContainer(folder, config)
        try:
            if identity is None:
                raise StartError(f"container {config.name}: its supervisor ended at once")
            _write(
                folder / "supervisor",
                msgspec.json.encode(Supervisor(identity.pid, identity.start, identity.boot, folder_id(folder))),
            )
            try:
                process.stdin.write(b"g")
                process.stdin.close()
            except OSError as error:
                raise StartError(f"container {config.name}: its supervisor ended at once") from error
            answer = await _read_line(process.stdout.fileno())
        finally:
            process.stdout.close()
            with contextlib.suppress(OSError):
                process.stdin.close()
        container.attach(identity)
        self._watched.append(container)
        if answer != "ok":
            await container.wait()
            self.forget(container)
            raise StartError(answer.removeprefix("error ") or "its supervisor ended without an answer")
        return container

    def _spawn(self, folder: Path, config: ContainerConfig, spec: Spec) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        Path(config.log_path).parent.mkdir(parents=True, exist_ok=True)
        _write(folder / "config.json", msgspec.json.encode(msgspec.structs.replace(config, env=())))
        _write(folder / "spec", self._spec_records(config, spec))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-E", str(self._compiled()), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            # Not empty: an empty one is what a process in the middle of an exec has, and those are looked at twice.
            env={"LANG": "C.UTF-8"},
            start_new_session=True,
        )

    def _spec_records(self, config: ContainerConfig, spec: Spec) -> bytes:
        records = [f"id={config.id}", f"cwd={spec.cwd}", f"log={config.log_path}", f"log-limit={self._log_limit}"]
        records += [f"stop-signal={config.stop_signal}", f"depth={spec.depth}"]
        if spec.uid is not None:
            records.append(f"uid={spec.uid}")
        if spec.gid is not None:
            records.append(f"gid={spec.gid}")
        records += [f"group={group}" for group in spec.groups]
        records += [f"argv={part}" for part in spec.argv]
        records += [f"env={name}={value}" for name, value in (*spec.env, (ID_VARIABLE, config.id))]
        return "\0".join(records).encode(errors="surrogateescape")

    def find(self, pod_uid: str) -> tuple[SupervisedContainer, ...]:
        """All container attempts of a pod, oldest attempt first; attaches to the ones that run."""
        found = []
        for path in sorted((self._pods_dir / pod_uid / "containers").glob("*/*/config.json")):
            try:
                config = msgspec.json.decode(path.read_bytes(), type=ContainerConfig)
                known = msgspec.json.decode((path.parent / "supervisor").read_bytes(), type=Supervisor)
            except (OSError, msgspec.DecodeError):
                # The agent died before the supervisor was allowed to go on: nothing was started.
                shutil.rmtree(path.parent, ignore_errors=True)
                continue
            container = SupervisedContainer(path.parent, config)
            if known.folder in ("", folder_id(path.parent)):
                container.attach(known)
            else:
                container.disown()
            self._watched.append(container)
            found.append(container)
        return tuple(sorted(found, key=lambda container: (container.config.name, container.config.attempt)))

    def forget(self, container: SupervisedContainer) -> None:
        """Drops the folder of a container that has ended."""
        if container in self._watched:
            self._watched.remove(container)
        container.detach()
        shutil.rmtree(container.folder, ignore_errors=True)

    def detach(self) -> None:
        """Stops watching all containers; they run on."""
        for container in self._watched:
            container.detach()
        self._watched.clear()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    temporary.replace(path)


def read_record(path: Path) -> dict[str, str]:
    """A file of ``key=value`` lines; nothing where it is missing."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


async def _read_line(fd: int) -> str:
    """One line from a pipe without a thread."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    parts: list[bytes] = []
    done: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        try:
            data = os.read(fd, 4096)
        except BlockingIOError:
            return
        parts.append(data)
        if not data or data.endswith(b"\n"):
            loop.remove_reader(fd)
            if not done.done():
                done.set_result(None)

    loop.add_reader(fd, readable)
    try:
        await asyncio.wait_for(done, START_TIMEOUT)
    except TimeoutError:
        return f"error no answer within {START_TIMEOUT:g} s"
    finally:
        loop.remove_reader(fd)
    return b"".join(parts).decode(errors="replace").strip()
