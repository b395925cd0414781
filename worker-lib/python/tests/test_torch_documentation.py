"""Tests of the Python code in the documentation of PyTorch."""

import pytest
from conftest import Ranks
from test_documentation import python_blocks

# Makes a model, which every rank then trains for a step; the gradients must be the mean over the ranks.
STEP = """
rank = dist.get_rank()
model = {model}
{hook}
model(torch.full((1, 2), rank + 1.0)).sum().backward()
(gradient,) = [parameter.grad for parameter in model.parameters()]
assert torch.equal(gradient, torch.full((1, 2), 1.5)), gradient
dist.destroy_process_group()
"""
IMPORTS = "import torch\nimport torch.distributed as dist\nimport iswitch\nimport iswitch.torch\n"
MODEL = "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))"


def block_with(page: str, words: str) -> str:
    (block,) = [block for block in python_blocks(page) if words in block]
    return block


@pytest.mark.parametrize("page", ["docs/python.md", "worker-lib/python/README.md"])
def test_the_backend_is_selected_by_its_name(switch, tmp_path, page):
    script = tmp_path / "train.py"
    script.write_text(IMPORTS + block_with(page, "init_process_group") + STEP.format(model=MODEL, hook=""))
    Ranks(2, script, ISWITCH_SWITCH=switch.address).succeed()


def test_a_hook_sums_the_buckets(switch, tmp_path):
    script = tmp_path / "train.py"
    hook = block_with("docs/python.md", "register_comm_hook")
    script.write_text(IMPORTS + 'dist.init_process_group("gloo")\n' + STEP.format(model=MODEL, hook=hook))
    Ranks(2, script, ISWITCH_SWITCH=switch.address).succeed()
