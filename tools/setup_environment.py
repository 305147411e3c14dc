"""Makes or refreshes ``.venv``; called by ``make`` with ``run`` or ``dev`` and the hash of what it is made from.

Versions come from constraints.txt, which holds nothing but versions. ``run`` installs what kubedra needs to run,
``dev`` what the tests need besides. When the stamps agree with the hash nothing happens, and no network is needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
MINIMUM = (3, 11)


def stamp(level: str) -> Path:
    return VENV / f".stamp-{level}"


def current(level: str, wanted: str) -> bool:
    path = stamp(level)
    return path.exists() and path.read_text().strip() == wanted and (VENV / "bin" / "kubedra").exists()


def pip(*arguments: str) -> None:
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    environment = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    done = subprocess.run([*command, *arguments], env=environment, cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(
            "kubedra: the packages could not be installed (see above). A network to a Python package index is needed "
            "for this one step; run the same make target again."
        )


def development_requirements() -> list[str]:
    import tomllib

    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"])


def main() -> int:
    level, wanted = sys.argv[1:3]
    if sys.version_info < MINIMUM:
        sys.exit(
            f"kubedra needs Python {MINIMUM[0]}.{MINIMUM[1]} or newer; {sys.executable} is "
            f"{sys.version.split()[0]}. Name another one, for example: make PYTHON=python3.12 demo"
        )
    if current(level, wanted):
        return 0
    if not (VENV / "bin" / "python").exists():
        print(f"== making {VENV.name} with Python {sys.version.split()[0]}", flush=True)
        try:
            venv.create(VENV, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"kubedra: {VENV} could not be made: {error} (on Debian: apt-get install python3-venv)")
    if not current("run", wanted):
        print("== installing kubedra and what it needs to run", flush=True)
        pip("--editable", ".")
        stamp("run").write_text(wanted + "\n")
    if level == "dev":
        print("== installing what the tests need besides", flush=True)
        pip(*development_requirements())
        stamp("dev").write_text(wanted + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
