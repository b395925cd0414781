"""One rank of test_torch_conformance.py: runs PyTorch's own test cases for a backend, from the installed package, with the
backend "iswitch". Prints the outcome of each case as JSON.

    pytorch_cases.py PATTERN     # a regular expression; runs the cases whose names it does not match

PyTorch starts new processes for each case, which takes seconds. Here, the same processes run all cases; each case has a new
default process group. The cases are those that PyTorch runs with Gloo.
"""

import contextlib
import datetime
import io
import json
import os
import re
import sys
import traceback
import unittest

import torch
import torch.distributed as dist

# The module reads the name on import, to select the cases.
os.environ["BACKEND"] = "gloo"

from torch.testing._internal import common_distributed, common_utils  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

import iswitch.torch  # noqa: E402, F401: registers the backend

# With Gloo, PyTorch skips the cases of groups on fewer than 8 ranks, although 3 are sufficient. With MPI, it does not.
os.environ["BACKEND"] = "mpi"

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
TIMEOUT = datetime.timedelta(seconds=60)
BASE = distributed_test.DistributedTest._DistTestBase


class Case(distributed_test.TestDistBackend, BASE):
    """One of PyTorch's cases, with a barrier that does not depend on the backend under test."""

    store: dist.Store
    barriers = 0

    def _barrier(self, *_arguments, **_options):
        self.barriers += 1
        key = f"barrier/{self.barriers}"
        if self.store.add(key, 1) == SIZE:
            self.store.set(f"{key}/done", "")
        self.store.wait([f"{key}/done"], TIMEOUT)


def run(name, store):
    """Runs one case; returns "passed", "skipped: REASON" or the traceback of its failure."""
    method = getattr(BASE, name)
    if getattr(method, "__unittest_skip__", False):
        return f"skipped: {method.__unittest_skip_why__}"
    if getattr(method, "_min_gpus_required", 0) > torch.cuda.device_count():
        return f"skipped: needs {method._min_gpus_required} GPUs"
    case = Case(name)
    case.rank, case.store = RANK, store
    # These cases only know how to train a model on the CPU if the backend is Gloo.
    distributed_test.BACKEND = "gloo" if "no_sync" in name else "iswitch"
    dist.init_process_group("iswitch", store=store, rank=RANK, world_size=SIZE, timeout=TIMEOUT)
    try:
        common_utils.set_rng_seed()
        case._barrier()
        getattr(case, name)()
        case._barrier()
        return "passed"
    except unittest.SkipTest as skip:
        return f"skipped: {skip}"
    except SystemExit as end:
        (message,) = [skip.message for skip in common_distributed.TEST_SKIPS.values() if skip.exit_code == end.code]
        return f"skipped: {message}"
    except Exception:
        return traceback.format_exc()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def main():
    torch.set_num_threads(1)
    excluded = re.compile(sys.argv[1])
    names = [name for name in sorted(dir(BASE)) if name.startswith("test_") and not excluded.search(name)]
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), SIZE, RANK == 0)
    outcomes = {}
    for number, name in enumerate(names):
        # Some cases print.
        with contextlib.redirect_stdout(io.StringIO()):
            outcomes[name] = run(name, dist.PrefixStore(f"case/{number}", store))
        print(name, outcomes[name], file=sys.stderr, flush=True)
    print(json.dumps(outcomes), flush=True)


main()
