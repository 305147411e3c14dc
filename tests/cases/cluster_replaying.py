"""Replays recorded cluster scenarios (cluster-observed) against control planes of our own, several at a time.

    PYTHONPATH=src:. python -m tests.cases.cluster_replaying [--only REGEX] [--planes N]

prints what differs, and how many scenarios are the same. The recorded tool does the steps and the normalisation.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import queue
import re
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.cases.cluster_comparing import forgiven
from tests.cases.cluster_exceptions import EXCEPTIONS
from tests.cases.embedded_control_plane import ControlPlane
from tests.shared_cases import shared_folder

Difference = tuple[str, Any, Any]


@dataclass(frozen=True)
class Result:
    """How one scenario went."""

    id: str
    differences: list[Difference]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def tools(folder: Path) -> tuple[ModuleType, ModuleType]:
    """The recorded tool's modules, speaking HTTPS to whichever port a cluster has."""
    path = str(folder / "tools" / "replay")
    if path not in sys.path:
        sys.path.insert(0, path)
    import cluster_replay  # type: ignore[import-not-found]
    import gt  # type: ignore[import-not-found]

    def connect(self: Any, timeout: float = 60) -> http.client.HTTPSConnection:
        context = ssl._create_unverified_context()
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=timeout)

    gt.Api.connect = connect
    return gt, cluster_replay


def scenarios(folder: Path, only: str) -> list[dict[str, Any]]:
    """The scenarios whose id matches."""
    with gzip.open(folder / "cases" / "cluster-observed.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [item for item in map(json.loads, lines) if re.search(only, item["id"])]


def replay(folder: Path, chosen: Iterable[dict[str, Any]], planes: int, data: Path) -> list[Result]:
    """Run the scenarios on so many control planes at once."""
    gt, comparer = tools(folder)
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()
    for item in chosen:
        waiting.put(item)
    results: list[Result] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        plane = ControlPlane(data / f"plane-{number}")
        try:
            cluster = gt.Cluster(plane.port)
            time.sleep(1)
            count = 0
            while True:
                try:
                    scenario = waiting.get_nowait()
                except queue.Empty:
                    return
                count += 1
                try:
                    got = gt.Run(cluster, scenario, f"{number}c{count:03d}z").go()
                    differences = comparer.differences(*forgiven(scenario, got))
                except Exception as error:
                    differences = [("the replay failed", "", repr(error))]
                with lock:
                    results.append(Result(scenario["id"], differences))
        finally:
            plane.stop()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(planes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results, key=lambda result: result.id)


def report(results: list[Result]) -> str:
    """What differs, and the count."""
    lines: list[str] = []
    for result in results:
        if result.same:
            continue
        excuse = EXCEPTIONS.get(result.id)
        lines.append(f"DIFFERS {result.id}" + (f" (on purpose: {excuse})" if excuse else ""))
        for path, want, got in result.differences:
            lines += [f"    {path}", f"        want {json.dumps(want)[:700]}", f"        got  {json.dumps(got)[:700]}"]
    same = sum(result.same for result in results)
    excused = sum(not result.same and result.id in EXCEPTIONS for result in results)
    lines.append(f"{same} of {len(results)} the same, {excused} more differ on purpose")
    return "\n".join(lines)


def main() -> None:
    """Replay from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="^[BCDG]-")
    parser.add_argument("--planes", type=int, default=4)
    arguments = parser.parse_args()
    folder = shared_folder()
    if folder is None:
        sys.exit("the recorded scenarios are not beside this checkout")
    with tempfile.TemporaryDirectory() as data:
        results = replay(folder, scenarios(folder, arguments.only), arguments.planes, Path(data))
    print(report(results))
    if any(not result.same and result.id not in EXCEPTIONS for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
