"""Semantic versions 2.0.0, as device attributes carry them and CEL compares them.

A device whose version attribute does not parse makes every selector fail on it, so the parser accepts exactly what
upstream's does (strict: three numbers, no leading zeros, no leading "v") and says the same words. CEL's
``semver(text, true)`` accepts a few loose spellings first; ``normalise`` does that and nothing else calls it.

Build metadata is kept for printing and ignored in comparison, hash and equality, as upstream's ``Equals`` does.

Upstream counterpart: github.com/blang/semver/v4 and k8s.io/apiserver/pkg/cel/library/semverlib.go (normalizeAndParse).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_UINT64_MAX: Final = 2**64 - 1
_NUMBERS: Final = frozenset("0123456789")
_ALPHANUMERIC: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")


class SemverError(ValueError):
    """A text that is not a semantic version; the message is upstream's."""


class Semver:
    """An immutable version: numbers, pre-release identifiers (ints or strings) and build identifiers."""

    __slots__ = ("build", "key", "major", "minor", "patch", "pre")

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...]
    build: tuple[str, ...]
    key: tuple[object, ...]

    def __init__(
        self, major: int, minor: int, patch: int, pre: tuple[int | str, ...] = (), build: tuple[str, ...] = ()
    ) -> None:
        set_ = object.__setattr__
        set_(self, "major", major)
        set_(self, "minor", minor)
        set_(self, "patch", patch)
        set_(self, "pre", pre)
        set_(self, "build", build)
        # A release sorts after its pre-releases; a number sorts before a word; fewer identifiers before more.
        identifiers = tuple((0, item, "") if isinstance(item, int) else (1, 0, item) for item in pre)
        set_(self, "key", (major, minor, patch, not pre, identifiers))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Semver is immutable")

    @staticmethod
    def parse(text: str) -> Semver:
        """Parse strictly; raises SemverError."""
        return _parse(text)

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 by precedence."""
        mine, theirs = self.key, other.key
        if mine == theirs:
            return 0
        return 1 if mine > theirs else -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: Semver) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Semver) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Semver) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Semver) -> bool:
        return self.compare(other) >= 0

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(str(item) for item in self.pre)
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (Semver, (self.major, self.minor, self.patch, self.pre, self.build))


def normalise(text: str) -> str:
    """Loose spelling to strict: drops a leading "v", adds missing minor and patch, drops leading zeros."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    if len(part) > 1:
        part = part.lstrip("0")
        if not part or part[0] not in _NUMBERS:
            part = "0" + part
    return part


def _number(text: str, what: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if not _NUMBERS.issuperset(text):
        raise SemverError(f'Invalid character(s) found in {what} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f'{what.capitalize()} number must not contain leading zeroes "{text}"')
    value = int(text) if len(text) <= 20 else _UINT64_MAX + 1
    if value > _UINT64_MAX:
        raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return value


@lru_cache(maxsize=4096)
def _parse(text: str) -> Semver:
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "major")
    minor = _number(parts[1], "minor")
    patch, plus, build_text = parts[2].partition("+")
    patch, dash, pre_text = patch.partition("-")
    patch_number = _number(patch, "patch")
    pre = tuple(_prerelease(item) for item in pre_text.split(".")) if dash else ()
    build = tuple(build_text.split(".")) if plus else ()
    for item in build:
        if not item:
            raise SemverError("Build meta data is empty")
        if not _ALPHANUMERIC.issuperset(item):
            raise SemverError(f'Invalid character(s) found in build meta data "{item}"')
    return Semver(major, minor, patch_number, pre, build)


def _prerelease(item: str) -> int | str:
    if not item:
        raise SemverError("Prerelease is empty")
    if _NUMBERS.issuperset(item):
        if len(item) > 1 and item[0] == "0":
            raise SemverError(f'Numeric PreRelease version must not contain leading zeroes "{item}"')
        value = int(item) if len(item) <= 20 else _UINT64_MAX + 1
        if value > _UINT64_MAX:
            raise SemverError(f'strconv.ParseUint: parsing "{item}": value out of range')
        return value
    if not _ALPHANUMERIC.issuperset(item):
        raise SemverError(f'Invalid character(s) found in prerelease "{item}"')
    return item
