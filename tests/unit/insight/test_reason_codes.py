"""The codes are documented one by one, and none is used that is not."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kubedra.insight import reason_codes

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [*(ROOT / "src/kubedra/insight").glob("*.py"), ROOT / "src/kubedra/allocation/reasons.py"]


def codes_used(name: str) -> Iterator[str]:
    """The first argument of every call of that name, where it is a literal."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            first = node.args[0]
            if called == name and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_every_code_of_a_reason_is_documented() -> None:
    used = set(codes_used("Reason"))
    assert used <= set(reason_codes.REASONS) | set(reason_codes.CANNOT_HELP)
    assert len(used) > 30


def test_every_code_of_a_remedy_is_documented() -> None:
    used = {*codes_used("Remedy"), *codes_used("remedy"), *codes_used("Edit")}
    assert used <= set(reason_codes.REMEDIES)


def test_every_documented_reason_is_in_use() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES if path.name != "reason_codes.py")
    for table in (reason_codes.REASONS, reason_codes.REMEDIES, reason_codes.NODES, reason_codes.CANNOT_HELP):
        for code in table:
            assert f'"{code}"' in text, code


def test_the_reference_page_is_up_to_date() -> None:
    tool = ROOT / "tools" / "generate_reason_reference.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
