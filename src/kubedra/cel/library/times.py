"""Durations and timestamps: parsing, printing, calendar fields in any time zone.

Both are integers of nanoseconds here; the texts are Go's (``1h2m3.5s``, RFC 3339 with up to nine digits).

Upstream counterpart: cel-go common/types/{duration,timestamp}.go, Go's time.ParseDuration and time.Parse.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from kubedra.cel.environment import Function, Overload
from kubedra.cel.errors import EvaluationError
from kubedra.cel.library.operators import MAX_TIME, MIN_TIME, overload_error
from kubedra.cel.literals import INT_MAX, INT_MIN
from kubedra.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubedra.cel.values import Duration, Timestamp, Value

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_TERM: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> Duration | None:
    """A Go duration, or None."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    if not rest or len(rest) > 256:
        return None
    total, position = 0, 0
    while position < len(rest):
        match = _TERM.match(rest, position)
        if match is None or (not match[1] and not match[2]):
            return None
        unit = _UNITS[match[3]]
        total += int(match[1] or "0") * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        position = match.end()
    total = -total if negative else total
    return Duration(total) if INT_MIN <= total <= INT_MAX else None


def parse_timestamp(text: str) -> Timestamp | None:
    """An RFC 3339 time, or None; a time out of CEL's range is an error of its own."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(group) for group in match.groups()[:6])
    fraction = int((match[7] or "")[:9].ljust(9, "0"))
    offset = 0
    if match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:6])
        if hours > 24 or minutes > 60:
            return None
        offset = (hours * 60 + minutes) * (60 if match[8][0] == "+" else -60)
    try:
        # Year 0 exists in Go's calendar and is out of CEL's range.
        moment = datetime(year or 4, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    elapsed = moment - _EPOCH
    seconds = elapsed.days * 86400 + elapsed.seconds - offset
    nanoseconds = seconds * 10**9 + fraction
    if not year or not MIN_TIME <= nanoseconds <= MAX_TIME:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def show_duration(value: int) -> str:
    """``string(duration)``: seconds with as many digits as a double needs."""
    from kubedra.cel.library.conversions import plain_decimal

    return plain_decimal(value / 10**9) + "s"


def show_timestamp(value: int) -> str:
    """``string(timestamp)``."""
    seconds, fraction = divmod(value, 10**9)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%m-%dT%H:%M:%S")
    year = (_EPOCH + timedelta(seconds=seconds)).year
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{year:04d}-{text}{digits}Z"


@lru_cache(maxsize=128)
def _zone(name: str) -> tzinfo:
    if ":" in name:
        hours, _, minutes = name.partition(":")
        try:
            hour, minute = int(hours, 10), int(minutes, 10)
        except ValueError:
            raise EvaluationError(f'strconv.Atoi: parsing "{name}": invalid syntax') from None
        if not 0 <= minute <= 59:
            raise EvaluationError(f"timezone offset minutes out of range [0, 59]: {name}")
        offset = hour * 60 - minute if name[0] == "-" else hour * 60 + minute
        if abs(offset) >= 1440:
            raise EvaluationError(f"unknown time zone {name}")
        return timezone(timedelta(minutes=offset))
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _local(value: Value, zone: Value) -> datetime:
    if zone.__class__ is not str:
        raise overload_error()
    moment = _EPOCH + timedelta(seconds=int(value) // 10**9)
    try:
        return moment.astimezone(_zone(zone))
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


_FIELDS: Final[dict[str, tuple[str, Callable[[datetime], int]]]] = {
    "getFullYear": ("timestamp_to_year", lambda moment: moment.year),
    "getMonth": ("timestamp_to_month", lambda moment: moment.month - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda moment: moment.day - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda moment: moment.day),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda moment: moment.isoweekday() % 7),
    "getHours": ("timestamp_to_hours_tz", lambda moment: moment.hour),
    "getMinutes": ("timestamp_to_minutes", lambda moment: moment.minute),
    "getSeconds": ("timestamp_to_seconds", lambda moment: moment.second),
    "getMilliseconds": ("timestamp_to_milliseconds", lambda moment: 0),
}
_SPANS: Final = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}


def _truncate(value: int, unit: int) -> int:
    return abs(value) // unit * (1 if value >= 0 else -1)


def _reader(name: str, read: Callable[[datetime], int]) -> Callable[..., Value]:
    def get(value: Value, zone: Value = "UTC") -> Value:
        if value.__class__ is Duration and name in _SPANS:
            return _truncate(int(value), _SPANS[name])
        if value.__class__ is not Timestamp:
            raise overload_error()
        if name == "getMilliseconds":
            _local(value, zone)
            return int(value) % 10**9 // 10**6
        return read(_local(value, zone))

    return get


def functions() -> tuple[Function, ...]:
    """The calendar members."""
    made: list[Function] = []
    for name, (id_, read) in _FIELDS.items():
        overloads = [
            Overload(id_, (TIMESTAMP,), INT, member=True),
            Overload(f"{id_}_with_tz", (TIMESTAMP, STRING), INT, member=True),
        ]
        if name in _SPANS:
            overloads.append(Overload(f"duration_to_{name[3:].lower()}", (DURATION,), INT, member=True))
        made.append(Function(name, tuple(overloads), _reader(name, read)))
    return tuple(made)
