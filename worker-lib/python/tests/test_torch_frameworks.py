"""Tests of the backend below other parts of PyTorch: FSDP2 and torch.compile."""

import json
from pathlib import Path

import pytest
from conftest import Ranks

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def results(module_switch):
    """Losses of two ranks, by backend."""
    # Without this setting, each rank starts processes that compile.
    options = {"ISWITCH_SWITCH": module_switch.address, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    output, _ = Ranks(2, HERE / "fsdp_and_compile.py", **options).succeed()
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("kind", ["fsdp", "compile"])
def test_training_has_the_losses_of_gloo_under(results, kind):
    expected, actual = results["gloo"][kind], results["iswitch"][kind]
    assert actual == pytest.approx(expected, rel=1e-5)
    assert actual[-1] < actual[0]


def test_both_use_the_switch(results):
    # FSDP reduces and scatters the gradients of each layer, DistributedDataParallel reduces one bucket in each of 4 steps.
    assert results["rounds"]["fsdp"] >= 4 and results["rounds"]["compile"] >= 4


def test_an_all_reduce_in_a_compiled_graph(results):
    # A sum of two ones, doubled.
    assert results["graph"] == [4.0, 4.0, 4.0]
