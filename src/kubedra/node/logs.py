"""Reads container logs: CRI lines in, what ``kubectl logs`` shows out.

The supervisor writes ``TIME STREAM F|P TEXT`` and moves a full file to ``.1``. Upstream counterpart:
pkg/kubelet/kuberuntime/logs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from kubedra.base.clock import Clock, parse_time


class LogOptions(msgspec.Struct, frozen=True):
    """What part of a log is wanted, and how."""

    follow: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ""


class _Line(msgspec.Struct, frozen=True):
    time: bytes
    stream: bytes
    partial: bool
    text: bytes


def _parse(raw: bytes) -> _Line | None:
    parts = raw.split(b" ", 3)
    if len(parts) < 3:
        return None
    return _Line(parts[0], parts[1], parts[2] == b"P", parts[3] if len(parts) > 3 else b"")


def _moment(text: bytes) -> datetime:
    head, _, tail = text.decode().partition(".")
    return parse_time(f"{head}.{tail.rstrip('Z')[:6] or '0'}Z")


class _Reader:
    """Turns raw bytes into what is shown; keeps the piece of a line that has not ended."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._rest = b""
        self._in_line = False

    def lines(self, data: bytes) -> Iterator[bytes]:
        """The parts of the output for more of the file, one per line of the file."""
        parts = (self._rest + data).split(b"\n")
        self._rest = parts.pop()
        for raw in parts:
            line = _parse(raw)
            if line is None or not self._wanted(line):
                continue
            head = line.time + b" " if self._options.timestamps and not self._in_line else b""
            self._in_line = line.partial
            yield head + line.text + (b"" if line.partial else b"\n")

    def _wanted(self, line: _Line) -> bool:
        options = self._options
        if options.stream and line.stream.decode() != options.stream.lower():
            return False
        return options.since is None or _moment(line.time) >= options.since


def _whole(path: Path) -> tuple[bytes, int, int]:
    """What was rotated away and what is there, with the file's inode and how much of it was read."""
    rotated = path.with_name(path.name + ".1")
    before = rotated.read_bytes() if rotated.exists() else b""
    with path.open("rb") as file:
        content = file.read()
        return before + content, os.fstat(file.fileno()).st_ino, len(content)


async def read_log(
    path: Path, options: LogOptions, is_running: Callable[[], bool], clock: Clock, poll: float
) -> AsyncIterator[bytes]:
    """The wanted part of a log; with ``follow`` until the container has ended. Raises FileNotFoundError."""
    reader = _Reader(options)
    # Asked before the file is read: what a container writes before it ends is in the file by then.
    running = is_running()
    content, inode, offset = _whole(path)
    shown = list(reader.lines(content))
    if options.tail_lines is not None:
        shown = _tail(shown, options.tail_lines)
    left = options.limit_bytes
    for piece in _limited(iter((b"".join(shown),)), left):
        yield piece
    if left is not None:
        left -= min(left, sum(map(len, shown)))
    while options.follow and (left is None or left > 0):
        if not running:
            return
        await clock.sleep(poll)
        running = is_running()
        data, inode, offset = _more(path, inode, offset)
        pieces = b"".join(reader.lines(data))
        for piece in _limited(iter((pieces,)), left):
            yield piece
        if left is not None:
            left -= min(left, len(pieces))


def _tail(pieces: list[bytes], count: int) -> list[bytes]:
    """The last lines; a line may have come in several pieces."""
    if count <= 0:
        return []
    ends = [index for index, piece in enumerate(pieces) if piece.endswith(b"\n")]
    complete = not pieces or pieces[-1].endswith(b"\n")
    wanted = count if complete else count - 1
    if len(ends) <= wanted:
        return pieces
    return pieces[ends[-wanted - 1] + 1 :] if wanted else pieces[ends[-1] + 1 :]


def _limited(pieces: Iterator[bytes], left: int | None) -> Iterator[bytes]:
    for piece in pieces:
        cut = piece if left is None else piece[:left]
        if cut:
            yield cut


def _more(path: Path, inode: int, offset: int) -> tuple[bytes, int, int]:
    """What was written since; a new inode means the old file was moved to ``.1``."""
    try:
        with path.open("rb") as file:
            current = os.fstat(file.fileno()).st_ino
            if current == inode:
                file.seek(offset)
                data = file.read()
                return data, inode, offset + len(data)
            data = file.read()
    except FileNotFoundError:
        return b"", inode, offset
    rotated = path.with_name(path.name + ".1")
    before = b""
    if rotated.exists():
        with rotated.open("rb") as file:
            if os.fstat(file.fileno()).st_ino == inode:
                file.seek(offset)
                before = file.read()
    return before + data, current, len(data)
