"""Every command that README, the how-tos and the examples tell a reader to type exists, with its options and files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kubedra.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({*ROOT.glob("README*.md"), *ROOT.glob("docs/how-to/*.md"), *ROOT.glob("examples/**/*.md")})


def typed(page: Path) -> list[str]:
    """The lines of the page's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]


CASES = [(page, line) for page in PAGES for line in typed(page)]


def ours(line: str) -> list[str] | None:
    """The arguments of a line that calls kubedra."""
    words = shlex.split(line, comments=True)
    if ">" in words:
        words = words[: words.index(">")]
    if not words or Path(words[0]).name != "kubedra":
        return None
    return [word for word in words[1:] if word != "&"]


def parsed(group: click.Command, arguments: list[str]) -> None:
    """Parse as the command line would, without calling anything. Raises ClickException."""
    context = group.make_context("kubedra", list(arguments), resilient_parsing=False)
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None, name
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(("page", "line"), [pytest.param(p, x, id=f"{p.name}: {x[:40]}") for p, x in CASES])
def test_what_a_page_says_to_type_can_be_typed(page: Path, line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    arguments = ours(line)
    if arguments is not None:
        parsed(main, arguments)
    for word in words:
        if word.startswith("examples/"):
            assert (ROOT / word).exists(), f"{page.name} names {word}"


def test_the_readme_is_read() -> None:
    lines = typed(ROOT / "README.md")
    assert "make demo" in lines and sum(ours(line) is not None for line in lines) >= 8


@pytest.mark.parametrize("wrong", ["nosuch", "up --nosuch", "why", "apply"])
def test_a_command_that_is_wrong_is_found(wrong: str) -> None:
    with pytest.raises(click.ClickException):
        parsed(main, shlex.split(wrong))
