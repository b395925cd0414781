"""Checks that the type stubs match the compiled module."""

import subprocess
import sys

import pytest


def test_stubs_describe_the_compiled_module():
    pytest.importorskip("mypy", reason="pip install mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "iswitch._iswitch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
