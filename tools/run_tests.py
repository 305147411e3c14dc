"""What ``make test`` runs: generated files, lint, types, layers, tests, then unit tests on every other Python here.

Each step prints its name first; the first that fails ends the run with its exit code.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
OTHERS = ("3.11", "3.12", "3.13", "3.14")


def step(title: str, *command: str, env: dict[str, str] | None = None) -> None:
    print(f"== {title}", flush=True)
    done = subprocess.run(command, cwd=ROOT, env=(os.environ | (env or {})), check=False)
    if done.returncode != 0:
        print(f"== failed: {title}", file=sys.stderr)
        raise SystemExit(done.returncode)


def lint() -> None:
    for generator in sorted((ROOT / "tools").glob("generate_*.py")):
        step(f"{generator.name} --check", sys.executable, str(generator), "--check", env={"PATH": path_with_venv()})
    step("ruff", str(BIN / "ruff"), "check", ".")
    step("ruff format", str(BIN / "ruff"), "format", "--check", ".")
    step("mypy --strict", str(BIN / "mypy"))
    step("layers", str(BIN / "lint-imports"), "--no-cache", env={"PYTHONPATH": "src"})


def path_with_venv() -> str:
    return f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"


def real_python(version: str) -> str | None:
    """An interpreter of that version that really starts (a shim that only complains does not count)."""
    candidates = [shutil.which(f"python{version}")]
    for root in (os.environ.get("PYENV_ROOT"), str(Path.home() / ".pyenv")):
        if root:
            candidates += [str(p / "bin" / "python") for p in sorted(Path(root, "versions").glob(f"{version}*"))]
    for candidate in filter(None, candidates):
        probe = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            done = subprocess.run([candidate, "-c", probe], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def other_pythons() -> None:
    """Unit tests on the other versions, in environments beside the main one; what can't be tested is said."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    made_from = (ROOT / "pyproject.toml").read_bytes() + (ROOT / "constraints.txt").read_bytes()
    wanted = hashlib.sha256(made_from).hexdigest()[:16]
    for version in OTHERS:
        if version == own:
            continue
        interpreter = real_python(version)
        if interpreter is None:
            print(f"== Python {version}: not on this machine, untested", flush=True)
            continue
        folder = ROOT / ".venv" / f"other-{version}"
        stamp = folder / ".stamp"
        python = folder / "bin" / "python"
        if not stamp.exists() or stamp.read_text() != wanted:
            step(f"Python {version}: making its environment", interpreter, "-m", "venv", "--clear", str(folder))
            install = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
            packages = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "--editable", ".")
            step(
                f"Python {version}: installing",
                *install,
                *packages,
                env={"PIP_CONSTRAINT": str(ROOT / "constraints.txt")},
            )
            stamp.write_text(wanted)
        step(f"Python {version}: unit tests", str(python), "-m", "pytest", "-q", "tests/unit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lint-only", action="store_true", help="generated files, lint, types and layers only")
    options = parser.parse_args()
    lint()
    if options.lint_only:
        return 0
    step("tests", sys.executable, "-m", "pytest", "-q", "--durations=10")
    other_pythons()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
