"""``python -m kubedra.drivers.simulated``: what ``kubedra driver simulated`` starts."""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path

from kubedra.drivers.simulated.fleet import FleetError, load
from kubedra.drivers.simulated.process import serve
from kubedra.drivers.simulated.service import SimulatedDriverSettings
from kubedra.sdk.plugin import SocketPathTooLong, default_run_dir
from kubedra.sdk.process import until_signalled


def main() -> None:
    """Read the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="Serves the simulated cards of a fleet.")
    parser.add_argument("--fleet", type=Path, required=True, help="the fleet file")
    parser.add_argument("--data", type=Path, required=True, help="the data folder that the agents use too")
    parser.add_argument("--run-dir", type=Path, help="the folder for sockets; by default it follows from --data")
    parser.add_argument("--kubeconfig", type=Path, help="how to reach the cluster; by default DATA/kubeconfig")
    parser.add_argument("--node", action="append", default=[], help="serve this node alone; may be repeated")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        settings = SimulatedDriverSettings(
            fleet=load(arguments.fleet),
            data_dir=arguments.data,
            run_dir=arguments.run_dir or default_run_dir(arguments.data),
            nodes=frozenset(arguments.node),
        )
        kubeconfig = arguments.kubeconfig or arguments.data / "kubeconfig"
        asyncio.run(until_signalled(serve(settings, kubeconfig)))
    except (FleetError, SocketPathTooLong) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
