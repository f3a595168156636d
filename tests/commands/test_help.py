"""What ``--help`` says of every command."""

import pytest

from eulerscan.commands import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_speaks_of_arguments_by_name_and_not_of_python(run, command):
    out, _ = run(command, "--help")
    assert out.startswith(f"usage: eulerscan {command}")
    assert "{None" not in out
    assert "INT [INT" not in out
    assert "STR [STR" not in out
    first = out.split("\n\n")[0]
    assert "[[PATH" not in first
    assert "[STR]" not in first


def test_a_switch_that_the_preset_decides_can_be_turned_on_and_off(run):
    out, _ = run("train", "--help")
    assert "--circular, --no-circular" in out
