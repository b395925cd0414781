"""Tests of iswitch.switch, and of `auto` as the address of the switch."""

import importlib.metadata
import math
import os
import signal
import socket
import subprocess
import sys
import time
from array import array
from pathlib import Path

import pytest
from conftest import PATIENCE_S, Ranks, free_port, on_each

import iswitch.switch
from iswitch.switch import LocalSwitch, find_iswitchd

# A rank that prints the address of the switch, sums once, and keeps the process running if its argument says so.
SUMMING = """
import sys
import time
from array import array
import iswitch
with iswitch.Worker() as worker:
    gradient = array("f", [worker.rank + 1.0])
    worker.all_reduce_(gradient)
    print(worker.switch, *gradient, flush=True)
    time.sleep(float(sys.argv[1]))
"""

# A process with a private switch, one member, and a forked child, all of which run until they are killed.
HOLDING = """
import os, time
import iswitch.switch
switch = iswitch.switch.LocalSwitch("--lease-ms", "500")
worker = iswitch.Worker(switch.address, rank=0, world_size=1)
child = os.fork()
if child > 0:
    print(switch.address, child, flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ISWITCHD", find_iswitchd())
    # Killed ranks leave their files there.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def auto(monkeypatch):
    """Environment of a job of torchrun whose ranks share a private switch."""
    monkeypatch.setenv("ISWITCH_SWITCH", "auto")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))


def serves(address: str) -> bool:
    """Returns whether a process has bound the UDP address."""
    host, port = address.split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, int(port)))
        except OSError:
            return True
    return False


def await_end(address: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while serves(address):
        assert time.monotonic() < deadline, "the switch is still running"
        time.sleep(0.05)


def module(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "iswitch.switch", *arguments]


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(module(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_local_switch_sums_and_stops():
    with LocalSwitch("--ordered") as switch:

        def run(rank):
            gradient = array("f", [rank, 1.0])
            with iswitch.Worker(switch.address, rank, 2) as worker:
                worker.all_reduce_(gradient)
            return gradient.tolist()

        assert on_each(2, run) == [[1.0, 2.0]] * 2
        assert serves(switch.address)
    assert not serves(switch.address)


def test_a_local_switch_that_cannot_start_says_why(capfd):
    with pytest.raises(RuntimeError, match="ended with status 2, expected a running switch"):
        LocalSwitch("--lease-ms=1")
    assert "--lease-ms is 1, expected 100 to 3600000" in capfd.readouterr().err


def test_a_local_switch_stops_after_a_killed_process_and_its_members():
    process = subprocess.Popen([sys.executable, "-c", HOLDING], stdout=subprocess.PIPE, text=True)
    with process, process.stdout as output:
        address, child = output.readline().split()
        assert serves(address)
        process.kill()
        try:
            await_end(address)
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_ranks_of_one_machine_share_a_private_switch(tmp_path):
    script = tmp_path / "summing.py"
    script.write_text(SUMMING)
    outputs = Ranks(3, script, "0", ISWITCH_SWITCH="auto").succeed()
    address = outputs[0].split()[0]
    assert outputs == [f"{address} 6.0\n"] * 3
    await_end(address)


def test_the_switch_of_a_killed_job_is_not_that_of_the_next(tmp_path):
    script = tmp_path / "summing.py"
    script.write_text(SUMMING)
    variables = {"ISWITCH_SWITCH": "auto", "MASTER_PORT": str(free_port())}
    killed = Ranks(2, script, "1000", **variables)
    first = [process.stdout.readline() for process in killed.processes]
    killed.kill()
    second = Ranks(2, script, "0", **variables).succeed()
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_two_jobs_at_once_have_a_switch_each(tmp_path):
    script = tmp_path / "summing.py"
    script.write_text(SUMMING)
    first = Ranks(2, script, "1000", ISWITCH_SWITCH="auto")
    lines = [process.stdout.readline() for process in first.processes]
    try:
        second = Ranks(2, script, "0", ISWITCH_SWITCH="auto").succeed()
    finally:
        first.kill()
    assert len(set(lines)) == len(set(second)) == 1
    assert lines[0] != second[0]


def test_the_private_switch_has_the_settings_of_rank_0(auto):
    def run(rank):
        gradient = array("f", [math.inf, 1.0])
        with iswitch.Worker(rank=rank, world_size=2, non_finite="sum") as worker:
            worker.all_reduce_(gradient)
        return gradient.tolist()

    assert on_each(2, run) == [[math.inf, 2.0]] * 2


def test_a_missing_rank_0_is_named(auto):
    port = os.environ["MASTER_PORT"]
    with pytest.raises(iswitch.WorkersMissingError, match=f"rank 0 .* within 0.2 s; .* MASTER_PORT={port}"):
        iswitch.Worker(rank=1, world_size=2, timeout=0.2)


def test_auto_is_refused_for_several_machines(auto, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="2 of the 4 ranks run on this machine.*set ISWITCH_SWITCH to its HOST:PORT"):
        iswitch.Worker(rank=0)


def test_a_missing_address_names_auto(monkeypatch):
    monkeypatch.delenv("ISWITCH_SWITCH", raising=False)
    with pytest.raises(ValueError, match="ISWITCH_SWITCH is set, expected HOST:PORT of iswitchd, or auto"):
        iswitch.Worker(rank=0, world_size=1)


def test_the_module_runs_iswitchd_with_its_options():
    process = subprocess.Popen(module("--udp", "127.0.0.1:0"), stdout=subprocess.PIPE, text=True)
    with process:
        address = process.stdout.readline().split()[-1]
        with iswitch.Worker(address, rank=0, world_size=1) as worker:
            assert worker.all_reduce_(array("f", [1.0])) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_the_module_serves_the_loopback_interface_by_default():
    assert run_module("--check").stdout == "the configuration is valid\n"
    help_text = run_module("--help").stdout
    assert "python -m iswitch.switch [OPTIONS]" in help_text and "--udp <ADDR:PORT>" in help_text
    refused = run_module("--udp=nowhere")
    assert refused.returncode == 2 and "nowhere" in refused.stderr


def test_a_missing_iswitchd_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("ISWITCHD")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [])
    with pytest.raises(FileNotFoundError, match="packaging/wheel/build"):
        iswitch.switch.find_iswitchd()


def test_the_wheel_contains_iswitchd(monkeypatch, tmp_path):
    monkeypatch.delenv("ISWITCHD")
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        iswitchd = Path(iswitch.switch.find_iswitchd())
    except FileNotFoundError:
        pytest.skip("the installed wheel has no iswitchd: packaging/wheel/build")
    assert iswitchd.parent == Path(sys.executable).parent
    version = subprocess.run([iswitchd, "--version"], capture_output=True, text=True, check=True).stdout
    assert version == f"iswitchd {iswitch.__version__}\n"
