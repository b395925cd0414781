"""Tests of the collectives of the backend: all types of Gloo, all layouts, synchronous and asynchronous, in groups."""

import json
from pathlib import Path

import pytest
from conftest import Ranks

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def ranks(module_switch):
    """Results and log of three ranks that perform every collective."""
    finished = Ranks(3, HERE / "every_collective.py", ISWITCH_SWITCH=module_switch.address).finish()
    for status, _, errors in finished:
        assert status == 0, errors
    return [(json.loads(output.splitlines()[-1]), errors) for _, output, errors in finished]


def test_every_collective_works_for_all_types_and_layouts_and_in_groups(ranks):
    for result, _ in ranks:
        assert not result["failures"], f"{len(result['failures'])} failures, the first: {result['failures'][0]}"
        assert result["count"] >= 1000


def test_the_switch_performs_the_collectives_that_it_can_sum(ranks):
    # Number of sums for a small and for a large tensor.
    expected = {
        "all_reduce": [1, 1],
        "all_reduce_mean": [1, 1],
        "all_reduce_others": [0, 0],
        "all_reduce_coalesced": [1, 1],
        "broadcast": [0, 0],
        "reduce": [1, 0],
        "all_gather": [0, 0],
        "all_gather_into_tensor": [0, 0],
        "gather": [0, 0],
        "scatter": [0, 0],
        "reduce_scatter": [1, 0],
        "reduce_scatter_tensor": [1, 0],
        "all_to_all": [0, 0],
        "all_to_all_single": [0, 0],
        "send_and_receive": [0, 0],
        "barrier": [2, 2],
    }
    for result, _ in ranks:
        assert result["rounds"] == expected


def test_the_log_mentions_a_type_that_the_switch_does_not_sum_once(ranks):
    lines = [line for _, errors in ranks for line in errors.splitlines() if "goes to Gloo" in line]
    # Integers are mentioned at the level INFO, which Python does not print by default.
    assert len(lines) == 1 and "all_reduce of torch.float64 goes to Gloo" in lines[0]
