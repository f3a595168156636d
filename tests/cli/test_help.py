"""What ``--help`` says of every command."""

import subprocess
import sys

import pytest

from eulerscan.cli.commands import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_speaks_of_arguments_by_name_and_not_of_python(run, command):
    out, _ = run(command, "--help")
    assert out.startswith(f"usage: eulerscan {command}")
    assert "None" not in out
    assert "INT [INT" not in out
    assert "STR [STR" not in out
    first = out.split("\n\n")[0]
    assert "[[PATH" not in first
    assert "[STR]" not in first


def test_lines_of_the_source_do_not_end_lines_of_the_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "600")
    out, _ = run("distances", "--help")
    assert "of the directions are tried" in out
    assert "from above and takes half a second" in out
    assert "counted from above (superlevel)" in out


def test_a_switch_that_the_preset_decides_can_be_turned_on_and_off(run):
    out, _ = run("train", "--help")
    assert "--circular, --no-circular" in out
    out, _ = run("advise", "--help")
    assert "--unit-ball, --no-unit-ball" in out
    assert "decided by sizes and places. (optional)" in " ".join(out.replace("\u2502", " ").split())


def test_a_default_that_is_set_is_shown_and_one_that_is_not_is_optional(run):
    out, _ = run("transform", "--help")
    text = " ".join(out.replace("\u2502", " ").split())
    assert "evenly spread. (default: 32)" in text
    assert "for shapes in the unit ball. (optional) --scale" in text
    assert "Default: one for each core. (optional) --scheduler" in text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train", "digits", "--batch-size", 0], "training: batch_size must be at least 1, got 0."),
        (["train", "digits", "--rotate", -5], "training.augmentation: rotate must be between 0 and 180, got -5.0."),
        (["train", "digits", "--epochs", "many"], "--epochs: it takes a whole number, got 'many'."),
        (["train", "digits", "--num-directions", "8.0"], "--num-directions: it takes a whole number, got '8.0'."),
        (["train", "digits", "--hidden", "64", "b"], "--hidden: it takes a whole number, got 'b'."),
        (["train", "digits", "--clip", "1,5"], "--clip: it takes a number, its decimals after a point, got '1,5'."),
        (["train", "digits", "--dropout", "1,5"], "--dropout: it takes a number, its decimals after a point, got '1,5'."),
        (["train", "digits", "--divide-by", "word"], "Expected one of ('vertices', 'simplices', 'peak')."),
        (["train", "digits", "--num-direction", "8"], "Perhaps you meant:"),
        (["train", "digits", "--nosuch"], "Unrecognized options: --nosuch"),
    ],
)
def test_an_error_names_the_option_and_the_help_of_its_command(run, monkeypatch, arguments, named):
    monkeypatch.setenv("COLUMNS", "120")
    out, err = run(*arguments, status=2)
    assert named in out + err
    assert "dummy" not in out + err
    assert "eulerscan train --help" in out + err


def test_without_a_command_all_are_named(run):
    out, _ = run("--help")
    assert out.startswith("usage: eulerscan ")
    assert all(command in out for command in COMMANDS)
    assert "Examples:" not in out  # a line or two for each: the rest is in its own help


@pytest.mark.parametrize(
    ("word", "hint"),
    [("transfrom", "Did you mean transform?"), ("distance", "Did you mean distances?"), ("x.obj", "There are data, train, ")],
)
def test_a_command_that_there_is_not_is_answered_with_those_there_are(run, word, hint):
    _, err = run(word, "shapes/", status=2)
    assert err.startswith(f"error: There is no command {word!r}. {hint}")


def test_shells_can_complete_the_options_of_commands(run):
    out, _ = run("--tyro-print-completion", "bash", status=None)
    assert "--num-thresholds" in out


def test_a_reader_that_has_seen_enough_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "eulerscan", "data", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()
