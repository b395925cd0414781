"""Checks the type annotations of the package."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]


def test_the_annotations_of_the_package_are_consistent():
    pytest.importorskip("basedpyright", reason="pip install basedpyright")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--project", str(PROJECT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
