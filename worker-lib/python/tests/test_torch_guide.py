"""Runs docs/guide/pytorch.md: saves its scripts and executes its commands, in order.

A word after `python` is the file name of a script. A word after `sh` states how a command runs: with `fails`, it ends
with an error; with `runs`, it runs until the end of the chapter; with `machines`, it runs on two machines, both of which
are this one.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE_S, free_port
from test_documentation import ADDRESS, ROOT

from iswitch.switch import find_iswitchd

MACHINES = 2


def blocks() -> Iterator[tuple[str, str | None, str]]:
    """Yields the language, the second word and the text of each block."""
    page = (ROOT / "docs/guide/pytorch.md").read_text()
    for block in re.finditer(r"^```(\w+)(?: (\S+))?\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        yield block[1], block[2], block[3]


class Shell:
    """Starts commands in the directory of the chapter, with the Python of this test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._replaced = {
            # The package is installed already.
            "pip install": "true",
            ADDRESS: f"127.0.0.1:{free_port()}",
            "node0:29400": f"127.0.0.1:{free_port()}",
        }
        self._variables = {
            **os.environ,
            "ISWITCHD": find_iswitchd(),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            # Killed ranks leave their files there.
            "XDG_RUNTIME_DIR": str(directory),
        }

    def start(self, command: str) -> subprocess.Popen[str]:
        for text, replacement in self._replaced.items():
            command = command.replace(text, replacement)
        return subprocess.Popen(
            ["bash", "-ec", f"exec env {command}"],
            cwd=self._directory,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def stop(process: subprocess.Popen[str]) -> None:
    """Ends a command that may be running, and its children: torchrun stops its ranks on SIGTERM."""
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


def finish(command: str, processes: list[subprocess.Popen[str]], fails: bool = False) -> None:
    try:
        for process in processes:
            output, errors = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode != 0) == fails, f"{command}\n{output}\n{errors}"
    finally:
        for process in processes:
            stop(process)


def test_every_block_of_the_guide_runs(tmp_path):
    shell = Shell(tmp_path)
    running = []
    try:
        for language, word, text in blocks():
            match language, word:
                case "python", str(name):
                    (tmp_path / name).write_text(text)
                case "sh", None:
                    finish(text, [shell.start(text)])
                case "sh", "fails":
                    finish(text, [shell.start(text)], fails=True)
                case "sh", "runs":
                    running.append(shell.start(text))
                    assert " ready: " in running[-1].stdout.readline()
                case "sh", "machines":
                    finish(text, [shell.start(text) for _ in range(MACHINES)])
                case other:
                    pytest.fail(f"a block of the guide has the words {other}")
    finally:
        for process in running:
            stop(process)
