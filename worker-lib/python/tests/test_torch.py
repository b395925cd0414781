"""Tests of iswitch.torch: training gives the same results as with Gloo, even if the switch fails in between."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE_S, Ranks, on_each

import iswitch

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"


def torchrun(processes, script, *arguments, options=(), **variables):
    """Runs a script under torchrun and returns the combined standard output of all ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [*command, *options, str(script), *arguments],
        # On a machine with a GPU, PyTorch's PowerSGD hook would wait for the GPU, even if all tensors are on the CPU.
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **variables},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def results(module_switch):
    """Results of four ranks under torchrun."""
    output = torchrun(4, HERE / "all_reduces.py", ISWITCH_SWITCH=module_switch.address)
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("way", ["hook", "backend"])
def test_training_has_the_losses_of_gloo(results, way):
    expected, actual = results["gloo"], results[way]
    assert actual["losses"] == pytest.approx(expected["losses"], rel=1e-5)
    assert actual["weights"] == pytest.approx(expected["weights"], rel=1e-5)
    assert expected["losses"][-1] < expected["losses"][0]


@pytest.mark.parametrize(("way", "tolerance"), [("fp16", 2e-3), ("bf16", 1e-2), ("power_sgd", 0.5)])
def test_training_with_the_compression_hooks_of_pytorch(results, way, tolerance):
    expected, actual = results["gloo"], results[way]
    assert actual["losses"] == pytest.approx(expected["losses"], rel=tolerance)
    assert actual["losses"][-1] < actual["losses"][0]


def test_float_sums_and_means_go_over_the_switch(results):
    expected = {
        "float32": [12.0],
        "float32, in the background": [12.0],
        "float16": [12.0],
        "bfloat16": [12.0],
        "mean": [3.0],
        "mean of bfloat16": [3.0],
        "not contiguous": [[4.0], [1.0]],
    }
    seen = {name: results["collectives"][name] for name in expected}
    assert seen == {name: {"value": value, "over_switch": 1} for name, value in expected.items()}


def test_other_types_and_operations_go_to_gloo(results):
    expected = {
        "float64": [12.0],
        "int64": [10.0],
        "maximum": [4.5],
    }
    seen = {name: results["collectives"][name] for name in expected}
    assert seen == {name: {"value": value, "over_switch": 0} for name, value in expected.items()}


def test_groups_of_some_ranks_have_a_job_of_their_own(results):
    assert results["collectives"]["part of the group"] == {"value": [2.0] * 5, "over_switch": 0}


def test_nan_is_an_error_of_its_own(results):
    assert "is NaN" in results["collectives"]["nan"]["value"]


def test_without_the_switch_ddp_fails_and_says_why(switch):
    ranks = Ranks(2, HERE / "endless.py", ISWITCH_SWITCH=switch.address, ISWITCH_SWITCH_TIMEOUT="0.5")
    ranks.wait_for("trains")
    switch.kill()
    for status, _, errors in ranks.finish():
        assert status != 0
        # If the other rank notices first and exits, Gloo reports its lost connection instead.
        assert f"no answer from the switch {switch.address}" in errors or "Connection" in errors, errors


def test_a_switch_that_comes_back_is_taken_up_again(switch):
    ranks = Ranks(2, HERE / "endless.py", ISWITCH_SWITCH=switch.address, ISWITCH_SWITCH_TIMEOUT="60")
    ranks.wait_for("trains")
    switch.kill()
    switch.start()
    assert all("continued" in output for output in ranks.succeed())


def test_tensors_are_summed_in_place(switch):
    import torch

    def run(rank):
        own = torch.arange(1000, dtype=torch.float32) * (rank + 1)
        place = own.data_ptr()
        with iswitch.Worker(switch.address, rank, 2) as worker:
            worker.all_reduce_(own)
            assert own.data_ptr() == place
            parameter = torch.nn.Parameter(torch.ones(3))
            with pytest.raises(BufferError, match="detach"):
                worker.all_reduce_(parameter)
            worker.all_reduce_(parameter.detach())
            assert parameter.tolist() == [2.0] * 3
            with pytest.raises(TypeError, match="expected float32"):
                worker.all_reduce_(torch.ones(3, dtype=torch.float64))
            for dtype in (torch.float16, torch.bfloat16):
                half = torch.full((3, 5), rank + 1.0, dtype=dtype)
                worker.all_reduce_(half)
                assert half.dtype == dtype and half.unique().tolist() == [3.0]
                worker.all_reduce_mean_(half)
                assert half.unique().tolist() == [3.0]
            with pytest.raises(ValueError, match="not contiguous"):
                worker.all_reduce_(torch.ones(3, 3).T)
        return own

    assert all(torch.equal(own, torch.arange(1000) * 3.0) for own in on_each(2, run))


def test_a_reducer_keeps_the_order_and_fails_what_is_left(switch):
    import torch

    from iswitch.torch import Reducer

    def run(rank):
        reducer = Reducer(iswitch.Worker(switch.address, rank, 2))
        tensors = [torch.full((floats,), float(rank)) for floats in (5, 50_000, 5, 7)]
        futures = [reducer.submit(tensor) for tensor in tensors]
        assert [future.wait().unique().tolist() for future in futures] == [[1.0]] * 4
        reducer.close()
        with pytest.raises(Exception, match="the reducer was closed"):
            reducer.submit(torch.ones(1)).wait()

    on_each(2, run)


def test_a_sum_without_all_workers_is_an_error(switch):
    import torch

    from iswitch.torch import Reducer

    workers = on_each(2, lambda rank: iswitch.Worker(switch.address, rank, 2))
    workers[1].close()
    reducer = Reducer(workers[0])
    with pytest.raises(iswitch.WorkersLostError, match="1 of 2 gradients"):
        reducer.all_reduce(torch.ones(4))
    reducer.close()


def test_the_example_of_ddp_runs(switch):
    output = torchrun(2, EXAMPLES / "ddp.py", "--steps", "30", ISWITCH_SWITCH=switch.address)
    assert "step 30" in output


def test_the_example_of_a_compression_hook_learns(switch):
    output, _ = Ranks(2, EXAMPLES / "compress_hook.py", "--steps", "30", ISWITCH_SWITCH=switch.address).succeed()
    assert_decreases(output, r"step \d+: loss (\S+)")


def test_the_example_of_one_flat_gradient_learns(switch):
    output, _ = Ranks(2, EXAMPLES / "flat_gradient.py", "--updates", "60", ISWITCH_SWITCH=switch.address).succeed()
    assert_decreases(output, r"update \d+: reward -(\S+)")


def assert_decreases(output, pattern):
    """Checks that the last number that the pattern captures is less than the first one."""
    first, *_, last = [float(number) for number in re.findall(pattern, output)]
    assert last < first


def test_the_example_of_ppo_runs(switch):
    pytest.importorskip("gymnasium", reason="pip install gymnasium")
    output = torchrun(2, EXAMPLES / "ppo.py", "--steps", "4096", ISWITCH_SWITCH=switch.address)
    assert "steps 4096" in output
