"""``eulerscan doctor`` compares every kernel with the reference, and says so by its exit code."""

import importlib
import importlib.metadata
import re
from pathlib import Path

import pytest
import torch

from eulerscan.cli import doctor
from eulerscan.kernels import dispatch, operation


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(doctor, "REPEATS", 1)
    if dispatch.has_triton():  # fewer and larger programs for the interpreter
        monkeypatch.syspath_prepend(Path(__file__).parents[1] / "kernels")
        interpreter = importlib.import_module("interpreter")
        monkeypatch.setattr(interpreter.problem, "TILES", interpreter.WIDE)


def test_all_kernels_of_this_machine_are_equal_to_the_reference(run):
    out, err = run("doctor")
    assert not err
    assert f"torch {importlib.metadata.version('torch')}" in out
    assert "cpu: " in out
    assert re.search(r"kernel cpu\n", out)
    for kernel in dispatch.kernels_for(torch.device("cpu")):
        assert re.search(rf"cpu +{kernel} +\d\.\de-\d\d +same +[\d.]+ +equal", out), out


@pytest.mark.parametrize("amount", [1e-3, float("nan")])
def test_a_tampered_kernel_is_found(run, monkeypatch, amount):
    monkeypatch.setattr(doctor.dispatch, "kernels_for", lambda device: ["portable", "cpu"])
    transform = operation.portable.Problem.transform
    monkeypatch.setattr(operation.portable.Problem, "transform", lambda self: transform(self) + amount)
    out, err = run("doctor", status=1)
    assert re.search(r"portable .* WRONG", out)
    assert re.search(r"cpu +cpu .* equal", out)
    assert "portable on cpu" in err


def test_a_tampered_gradient_is_found(run, monkeypatch):
    monkeypatch.setattr(doctor.dispatch, "kernels_for", lambda device: ["portable"])
    differentiate = operation.portable.Problem.differentiate
    monkeypatch.setattr(
        operation.portable.Problem,
        "differentiate",
        lambda self, gradient, needs: [g * 1.001 for g in differentiate(self, gradient, needs)],
    )
    run("doctor", status=1)


def test_a_kernel_that_raises_is_reported_and_the_others_are_checked(run, monkeypatch):
    def broken(self):
        raise RuntimeError("no kernel image is available\nfor execution")

    monkeypatch.setattr(doctor.dispatch, "kernels_for", lambda device: ["portable", "cpu"])
    monkeypatch.setattr(operation.portable.Problem, "transform", broken)
    out, _ = run("doctor", status=1)
    assert "FAILED: RuntimeError: no kernel image is available" in out
    assert re.search(r"cpu +cpu .* equal", out)


def test_exact_heights_are_far_from_every_threshold():
    """So that rounding on another device cannot change an exact transform."""
    complex = doctor._shapes()
    heights = complex.points.double() @ doctor.directions.fibonacci(5).double().T
    assert float((heights.unsqueeze(-1) - doctor.thresholds(9).double()).abs().min()) > 1e-6
