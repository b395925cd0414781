"""Tests with PyTorch's own test cases for a backend (`torch.testing._internal.distributed.distributed_test`), and with new
cases modelled on its tests of Gloo, which the package does not contain. docs/python-conformance.md lists the cases that do
not apply."""

import json
from pathlib import Path

import pytest
from conftest import Ranks

HERE = Path(__file__).parent
# Three ranks, so that a group of two ranks is not the whole world. A few cases need four.
RANKS, RANKS_FOR_ALL = 3, 4
# Cases that wait for timeouts or start PyTorch's profiler; --all-pytorch-cases includes them.
SLOW = r"profiler|monitored_barrier|barrier_timeout"
# Cases that fail because they expect the wording of Gloo's error messages.
OTHER_WORDS = {"test_barrier_timeout_full_group", "test_barrier_timeout_group"}


def test_pytorchs_own_cases_pass(module_switch, tmp_path, pytestconfig):
    pytest.importorskip("expecttest", reason="pip install expecttest")
    for directory in ("barrier", "test_dir", "init_dir"):
        (tmp_path / directory).mkdir()
    runs_all = pytestconfig.getoption("--all-pytorch-cases")
    count, excluded = (RANKS_FOR_ALL, "|".join(OTHER_WORDS)) if runs_all else (RANKS, SLOW)
    variables = {"ISWITCH_SWITCH": module_switch.address, "TEMP_DIR": str(tmp_path)}
    outputs = Ranks(count, HERE / "pytorch_cases.py", excluded, **variables).succeed()
    passed = set()
    for outcomes in (json.loads(output.splitlines()[-1]) for output in outputs):
        failures = {name: text for name, text in outcomes.items() if not text.startswith(("passed", "skipped: "))}
        assert not failures, "\n".join(f"{name}: {text}" for name, text in failures.items())
        passed |= {name for name, outcome in outcomes.items() if outcome == "passed"}
    # If a new version of PyTorch renamed the cases or skipped them, nothing would be tested.
    assert len(passed) >= 80


def test_cases_after_the_model_of_pytorchs_tests_of_gloo(module_switch):
    outputs = Ranks(2, HERE / "gloo_cases.py", ISWITCH_SWITCH=module_switch.address).succeed()
    for outcomes in (json.loads(output.splitlines()[-1]) for output in outputs):
        assert set(outcomes.values()) == {"passed"}, "\n".join(outcomes.values())
        assert len(outcomes) >= 10
