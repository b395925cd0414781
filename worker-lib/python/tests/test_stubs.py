"""The type stubs say what the compiled module has."""

import subprocess
import sys

import pytest


def test_stubs_describe_the_compiled_module():
    pytest.importorskip("mypy", reason="pip install mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "iswitch._iswitch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
