"""Tests of the Python code in the documentation of PyTorch."""

import pytest
from conftest import Ranks, lighthouse
from test_documentation import python_blocks

# Creates a model, which every rank then trains for one step; the gradients must be the mean over the ranks.
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


# The name of this machine may have no address.
ELASTIC = """
import os, socket
socket.gethostname = lambda: "127.0.0.1"
import torch, torch.distributed as dist, torchft, iswitch.torchft
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=True, wait_for_workers=False)
model = torch.nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), 1.0)
load, save = model.load_state_dict, model.state_dict
before = model.weight.detach().clone()
{block}
optimizer.zero_grad()
model(torch.full((1, 2), 1.5)).sum().backward()
optimizer.step()
assert manager.current_step() == 1 and manager.num_participants() == 1
assert torch.equal(before - model.module.weight, torch.full((1, 2), 1.5))
manager.shutdown(wait=False)
"""


def test_torchft_determines_the_members_of_a_step(switch, tmp_path):
    pytest.importorskip("torchft", reason="pip install torchft")
    script = tmp_path / "train.py"
    script.write_text(ELASTIC.format(block=block_with("docs/python.md", "torchft.Manager")))
    with lighthouse() as address:
        Ranks(1, script, ISWITCH_SWITCH=switch.address, TORCHFT_LIGHTHOUSE=address).succeed()
