"""Both READMEs say the same: the same number of headings, the same commands, links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def headings(text: str) -> list[int]:
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [len(m.group(1)) for m in re.finditer(r"^(#+) ", outside, flags=re.MULTILINE)]


def commands(text: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#]+)\)", text)


def test_headings_commands_and_links_are_equal() -> None:
    assert headings(ENGLISH) == headings(CHINESE)
    assert commands(ENGLISH) == commands(CHINESE)
    other = {"README.zh-CN.md", "README.md"}
    assert [x for x in links(ENGLISH) if x not in other] == [x for x in links(CHINESE) if x not in other]


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], key=str), ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [
        link
        for link in links(page.read_text(encoding="utf-8"))
        if not link.startswith("http") and not (page.parent / link).exists()
    ]
    assert not missing


def test_no_command_of_the_readme_needs_kubectl() -> None:
    assert not any("kubectl" in block for block in commands(ENGLISH))
