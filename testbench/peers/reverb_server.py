"""Reverb server with one table "t". Prints "ready PORT", and serves until it is killed.

Arguments: port (0 selects a free one), maximum number of items in the table, and sampler (prioritized or uniform).
"""

import sys

import reverb


def main():
    port, max_size, sampler = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    selectors = {"uniform": reverb.selectors.Uniform(), "prioritized": reverb.selectors.Prioritized(1.0)}
    table = reverb.Table(
        name="t",
        sampler=selectors[sampler],
        remover=reverb.selectors.Fifo(),
        max_size=max_size,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server(tables=[table], port=port or None)
    print(f"ready {server.port}", flush=True)
    server.wait()


main()
