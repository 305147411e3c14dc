"""Naming admission plugins on the command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kubedra.cli.admission import ADMISSION


@click.command()
@ADMISSION
def command(admission: frozenset[str]) -> None:
    click.echo(" ".join(sorted(admission)))


@pytest.mark.parametrize(
    ("given", "said"),
    [([], ""), (["--admission", "ServiceAccount, NodeRestriction"], "NodeRestriction ServiceAccount")],
)
def test_plugins_are_named_with_commas(given: list[str], said: str) -> None:
    assert CliRunner().invoke(command, given).output.strip() == said


def test_an_unknown_plugin_is_wrong_usage_and_names_those_that_exist() -> None:
    done = CliRunner().invoke(command, ["--admission", "Foo"])
    assert done.exit_code == 2
    assert "unknown admission plugin 'Foo'; there are NodeRestriction, ServiceAccount" in done.output
