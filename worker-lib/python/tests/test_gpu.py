"""Tests of iswitch.torch with tensors on a GPU. Without a GPU they are skipped, even where all other tests are required:
the machines on which this project is tested have none."""

import json
from pathlib import Path

import pytest
from conftest import Ranks, has_torch

RANKS = 2


def has_gpu() -> bool:
    if not has_torch():
        return False
    import torch

    return torch.cuda.is_available()


pytestmark = pytest.mark.skipif(not has_gpu(), reason="THIS MACHINE HAS NO GPU: the copies of CUDA tensors are not tested")


@pytest.fixture(scope="module")
def results(module_switch):
    output = Ranks(RANKS, Path(__file__).with_name("gpu.py"), ISWITCH_SWITCH=module_switch.address).succeed()[0]
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("way", ["hook", "backend"])
def test_training_on_a_gpu_has_the_losses_of_gloo(results, way):
    assert results[way] == pytest.approx(results["gloo"], rel=1e-4)
    assert results["gloo"][-1] < results["gloo"][0]


def test_tensors_of_all_types_and_layouts_are_summed(results):
    expected = {name: [3.0] for name in ("torch.float32", "torch.float16", "torch.bfloat16")}
    assert results["sums"] == {**expected, "not contiguous": [[2.0], [1.0]], "empty": []}


def test_a_sum_follows_the_kernels_before_it_and_precedes_those_after_it(results):
    assert results["ordered"] == [[2.0 * (1 + 2 * number)] for number in range(4)] * 2


def test_many_tensors_are_summed_at_once(results):
    assert results["pending"] == 60
