"""Tests of killed ranks, replicas and switches. `benchmarks/kills.py` kills at more moments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE_S, lighthouse

from iswitch.switch import find_iswitchd

PACKAGE = Path(__file__).parents[1]


def run(script, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, str(PACKAGE / script), *arguments],
        env={**os.environ, "ISWITCHD": find_iswitchd(), "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-5000:]}"
    return done.stdout


def test_ranks_end_and_name_what_was_killed():
    output = run("benchmarks/kills.py", "--mode", "group", "--victim", "each", "--times", "3")
    assert all(f"group, {victim}: 1 kills" in output for victim in ("rank", "switch", "both"))


def test_replicas_train_on_with_the_right_divisor_and_equal_weights():
    pytest.importorskip("torchft", reason="pip install torchft")
    output = run("benchmarks/kills.py", "--mode", "elastic", "--victim", "each", "--times", "2")
    assert all(f"elastic, {victim}: 1 kills" in output for victim in ("rank", "switch"))


def test_the_elastic_example_runs(switch):
    pytest.importorskip("torchft", reason="pip install torchft")
    arguments = ("--replica", "0", "--steps", "100", "--address", "127.0.0.1")
    with lighthouse() as address:
        output = run("examples/elastic.py", *arguments, ISWITCH_SWITCH=switch.address, TORCHFT_LIGHTHOUSE=address)
    assert "step 100: 1 replicas" in output
