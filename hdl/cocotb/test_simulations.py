"""Runs the cocotb tests on Icarus Verilog: `pytest hdl/cocotb`."""

import os
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VERILOG = HERE.parent / "verilog/iswitch_accel.v"
BUILD = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target")) / "cocotb"


def needs(program):
    """Skips the test if the program is missing, or fails if ISWITCH_REQUIRE_ALL_TESTS is set."""
    if shutil.which(program):
        return
    line = f"SKIPPED cocotb: needs the program {program} (apt-get install iverilog)"
    if "ISWITCH_REQUIRE_ALL_TESTS" in os.environ:
        pytest.fail(line)
    pytest.skip(line)


@pytest.mark.parametrize(
    ("top", "sources", "module"),
    [
        ("iswitch_accel", [VERILOG], "accelerator_tests"),
        ("mini_datapath", [VERILOG, *sorted((HERE / "datapath").glob("*.v"))], "datapath_tests"),
    ],
)
def test_on_icarus(top, sources, module):
    """Checks that the module contains tests and that all of them pass."""
    needs("iverilog")
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    runner = get_runner("icarus")
    place = BUILD / top
    runner.build(sources=sources, hdl_toplevel=top, build_dir=place, always=True, timescale=("1ns", "1ps"))
    results = runner.test(hdl_toplevel=top, test_module=module, build_dir=place, test_dir=HERE,
                          results_xml=str(place / "results.xml"))
    tests, failed = get_results(results)
    assert tests > 0
    assert failed == 0
