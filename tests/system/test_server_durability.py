"""The reply is written after the write is on disk: the order of system calls, as strace saw it."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.interop.server_process import running_server

pytestmark = pytest.mark.system


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_reply_comes_after_the_sync(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with running_server(tmp_path / "data") as process:
        calls = "trace=fdatasync,fsync,write,sendto,sendmsg,writev"
        command = ["strace", "-f", "-y", "-qq", "-e", calls, "-o", str(trace), "-p", str(process.pid)]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
        url = process.url  # type: ignore[attr-defined]
        connection = http.client.HTTPSConnection(
            url.removeprefix("https://"), context=ssl._create_unverified_context(), timeout=20
        )
        headers = {"Authorization": "Bearer admin", "Content-Type": "application/json"}
        # The first request opens the connection and gives strace time to attach.
        for _ in range(50):
            connection.request("GET", "/api/v1/namespaces/default", headers=headers)
            connection.getresponse().read()
            time.sleep(0.1)
            if trace.exists() and trace.stat().st_size:
                break
        else:
            tracer.kill()
            tracer.wait()
            pytest.skip("strace can't attach here")
        seen = len(trace.read_text().splitlines())
        body = json.dumps({"metadata": {"name": "durable"}, "data": {"k": "v" * 300}})
        connection.request("POST", "/api/v1/namespaces/default/configmaps", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201
        time.sleep(0.3)
        connection.close()
        tracer.terminate()
        tracer.wait(10)
        assert tracer.stderr is not None
        tracer.stderr.close()
    lines = trace.read_text().splitlines()[seen:]
    synced = [i for i, line in enumerate(lines) if re.search(r"f(data)?sync\(\d+<[^>]*store\.db-wal>\)\s*= 0", line)]
    resumed = [i for i, line in enumerate(lines) if re.search(r"f(data)?sync resumed.*= 0", line)]
    replied = [i for i, line in enumerate(lines) if re.search(r"(write|sendto|sendmsg|writev)\(\d+<(TCP|socket)", line)]
    assert synced or resumed, lines
    assert replied, lines
    assert min(synced + resumed) < min(replied), lines
