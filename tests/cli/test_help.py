"""What ``--help`` says of every command."""

import re
import subprocess
import sys

import pytest

from eulerscan import ECTConfig
from eulerscan.cli.commands import COMMANDS, load
from eulerscan.training.augmentation import Augmentation
from eulerscan.training.config import ModelConfig, TrainingConfig


@pytest.mark.parametrize("command", COMMANDS)
def test_help_speaks_of_arguments_by_name_and_not_of_python(run, command):
    out, _ = run(command, "--help")
    assert out.startswith(f"usage: eulerscan {command}")
    assert "None" not in out
    assert "(default: )" not in out
    assert "STR [STR" not in out
    first = out.split("\n\n")[0]
    assert "[[PATH" not in first
    assert "[STR]" not in first


@pytest.mark.parametrize("command", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(run, command):
    summary = COMMANDS[command][1]
    assert load(command).__doc__.startswith(summary.removesuffix("."))
    assert summary in " ".join(run("--help")[0].split())


def test_lines_of_the_source_do_not_break_lines_of_the_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    out, _ = run("distances", "--help")
    assert "In the plane, all rotations by multiples of the angle between directions are tried. In space," in out
    assert "simplices, or by its peak: the largest absolute value." in out


@pytest.mark.parametrize("options", [ECTConfig, ModelConfig, TrainingConfig, Augmentation])
def test_continued_lines_of_options_begin_with_a_letter(options):
    """Since tyro joins only such lines."""
    assert not re.findall(r"\n {12,}[^a-zA-Z].*", options.__doc__)


def test_a_switch_that_the_preset_decides_can_be_turned_on_and_off(run):
    out, _ = run("train", "--help")
    assert "--circular, --no-circular" in out


def test_a_default_that_is_set_is_shown_and_one_that_is_not_is_optional(run):
    out, _ = run("transform", "--help")
    text = " ".join(out.replace("\u2502", " ").split())
    assert "evenly spread. (default: 32)" in text
    assert "their largest norm. (optional) --scale" in text
    assert "Default: one per core. (optional) --scheduler" in text


@pytest.mark.parametrize("command", ["transform", "distances", "plot", "explore", "train"])
def test_no_normalization_is_a_choice(run, command):
    out, _ = run(command, "--help")
    assert re.search(r"--normalize \{unit_ball,center,(\w+,)*none\}", out)
    assert "--divide-by {vertices,simplices,peak,none}" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["train", "digits", "--batch-size", 0], "training: batch_size must be at least 1, got 0."),
        (["train", "digits", "--rotate", -5], "training.augmentation: rotate must be between 0 and 180, got -5.0."),
        (["train", "digits", "--epochs", "many"], "--epochs: invalid literal for int() with base 10: 'many'"),
        (["train", "digits", "--num-directions", "8.0"], "--num-directions: invalid literal for int() with base 10: '8.0'"),
        (["train", "digits", "--hidden", "64", "b"], "--hidden: Could not find valid parse for arguments: ['64', 'b']"),
        (["train", "digits", "--clip", "1,5"], "--clip: could not convert string to float: '1,5'"),
        (["train", "digits", "--dropout", "1,5"], "--dropout: could not convert string to float: '1,5'"),
        (["train", "digits", "--divide-by", "word"], "Expected one of ('vertices', 'simplices', 'peak', 'none')."),
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
    [
        ("transfrom", "Did you mean transform?"),
        ("distance", "Did you mean distances?"),
        ("x.obj", "Commands are data, train, "),
    ],
)
def test_a_command_that_there_is_not_is_answered_with_those_there_are(run, word, hint):
    _, err = run(word, "shapes/", status=2)
    assert err.startswith(f"error: unknown command {word!r}. {hint}")


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
