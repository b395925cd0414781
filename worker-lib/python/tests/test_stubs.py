"""Checks that the type stubs match the compiled modules."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["iswitch._iswitch", "iswitch._studies"])
def test_stubs_describe_the_compiled_module(module: str):
    pytest.importorskip("mypy", reason="pip install mypy")
    command = [sys.executable, "-m", "mypy.stubtest", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
