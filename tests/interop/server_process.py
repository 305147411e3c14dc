"""A server in a process of its own, for clients that block."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubedra.server.server import Server
from kubedra.server.settings import ServerSettings

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running_server(data_dir: Path, port: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Starts this file as a server and waits until it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__)), str(data_dir), str(port)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("https://"), line
        process.url = line.strip()  # type: ignore[attr-defined]
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(15)
        if process.stdout is not None:
            process.stdout.close()


async def _main(data_dir: str, port: str) -> None:
    server = Server(ServerSettings(Path(data_dir), port=int(port), admin_token="admin"))
    await server.start()
    print(server.url, flush=True)
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    await done.wait()
    started = time.monotonic()
    await server.stop()
    print(f"stopped in {time.monotonic() - started:.2f} s", flush=True)


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main(*sys.argv[1:3]))
