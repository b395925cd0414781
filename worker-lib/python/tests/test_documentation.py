"""Tests of the Python code in the documentation of arrays."""

import re
from pathlib import Path

import numpy as np

import iswitch

ROOT = Path(__file__).resolve().parents[3]
# Address of the switch in the documentation.
ADDRESS = "10.9.0.254:7711"


def python_blocks(page: str) -> list[str]:
    """Returns the Python code blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def test_arrays_are_summed(switch):
    (block,) = [block for block in python_blocks("docs/python.md") if "all_reduce_(" in block]
    assert ADDRESS in block and "world_size=4" in block
    # One worker instead of four: each sum equals its array.
    code = block.replace(ADDRESS, switch.address).replace("world_size=4", "world_size=1")
    gradient = np.arange(1000, dtype=np.float32)
    exec(code, {"iswitch": iswitch, "gradient": gradient})  # noqa: S102
    np.testing.assert_array_equal(gradient, np.arange(1000, dtype=np.float32))
