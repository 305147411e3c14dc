"""CRI log files: pieces, tails, rotation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kubedra.client.clock import RealClock
from kubedra.node.logs import LogOptions, read_log

EMPTY = " "
LINES = f"""2026-01-01T00:00:01.123456789Z stdout F one
2026-01-01T00:00:02.000000000Z stdout P lo
2026-01-01T00:00:02.000000001Z stdout F ng
2026-01-01T00:00:03.000000000Z stderr F{EMPTY}
2026-01-01T00:00:04.000000000Z stdout F a b
"""


async def read(path: Path, **options: object) -> str:
    pieces = read_log(path, LogOptions(**options), lambda: False, RealClock(), 0.01)  # type: ignore[arg-type]
    return "".join([piece.decode() async for piece in pieces])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "one\nlong\n\na b\n"),
        ({"tail_lines": 3}, "long\n\na b\n"),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 9}, "one\nlong\n\na b\n"),
        ({"limit_bytes": 5}, "one\nl"),
        ({"stream": "Stderr"}, "\n"),
        ({"since": datetime(2026, 1, 1, 0, 0, 3, tzinfo=UTC)}, "\na b\n"),
        ({"timestamps": True, "tail_lines": 1}, "2026-01-01T00:00:04.000000000Z a b\n"),
        ({"timestamps": True, "since": datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC), "tail_lines": 3}, None),
    ],
)
async def test_parts_of_a_log(tmp_path: Path, options: dict[str, object], text: str | None) -> None:
    (tmp_path / "0.log").write_text(LINES)
    got = await read(tmp_path / "0.log", **options)
    if text is not None:
        assert got == text
    else:
        assert got.splitlines()[0] == "2026-01-01T00:00:02.000000000Z long"


async def test_what_was_rotated_away_comes_first(tmp_path: Path) -> None:
    (tmp_path / "0.log.1").write_text(LINES[:44])
    (tmp_path / "0.log").write_text(LINES[44:])
    assert (await read(tmp_path / "0.log")).startswith("one\nlong\n")


async def test_following_goes_on_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(LINES)
    turns = iter(range(5))
    changes = {
        1: lambda: _append(path, "2026-01-01T00:00:05.0Z stdout F five\n"),
        2: lambda: (path.rename(tmp_path / "0.log.1"), path.write_text("2026-01-01T00:00:06.0Z stdout F six\n")),
    }

    def is_running() -> bool:
        turn = next(turns)
        changes.get(turn, lambda: None)()
        return turn < 3

    pieces = read_log(path, LogOptions(follow=True, tail_lines=0), is_running, RealClock(), 0.001)
    assert "".join([piece.decode() async for piece in pieces]) == "five\nsix\n"


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)
