"""Training that replicas may leave and join at any time, with torchft and the switch.

    pip install torchft
    iswitchd --udp 127.0.0.1:7711 --lease-ms 2000 &
    torchft_lighthouse --min_replicas 1 --join_timeout_ms 2000 --heartbeat_timeout_ms 2000 --bind 127.0.0.1:29510 &
    export ISWITCH_SWITCH=127.0.0.1:7711 TORCHFT_LIGHTHOUSE=http://127.0.0.1:29510
    python elastic.py --replica 0 & python elastic.py --replica 1 & python elastic.py --replica 2 &

If a replica is killed, the others continue to train. A restarted replica receives the weights and joins the next step.
"""

import argparse
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torchft
from torch import nn

import iswitch.torchft


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replica", type=int, required=True, help="number of this replica")
    parser.add_argument("--steps", type=int, default=2000, help="number of training steps")
    parser.add_argument("--address", default=socket.gethostname(), help="address of this machine for the other replicas")
    options = parser.parse_args()

    torch.set_num_threads(1)
    network = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    adam = torch.optim.Adam(network.parameters(), lr=3e-3)

    def save() -> dict[str, object]:
        return {"network": network.state_dict(), "adam": adam.state_dict()}

    def load(state: dict[str, dict]) -> None:
        network.load_state_dict(state["network"])
        adam.load_state_dict(state["adam"])

    store = dist.TCPStore("0.0.0.0", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=iswitch.torchft.ProcessGroup(timeout=timedelta(seconds=30)),
        load_state_dict=load,
        state_dict=save,
        min_replica_size=1,
        use_async_quorum=False,
        replica_id=f"replica{options.replica}",
        rank=0,
        world_size=1,
        store_addr=options.address,
        store_port=store.port,
        hostname=options.address,
    )
    model = iswitch.torchft.DistributedDataParallel(manager, network)
    optimizer = torchft.Optimizer(manager, adam)

    # Each replica draws different points; all replicas together learn one surface.
    points = torch.Generator().manual_seed(options.replica)
    while manager.current_step() < options.steps:
        optimizer.zero_grad()  # agrees with the other replicas on the members of the step
        inputs = torch.rand(256, 2, generator=points) * 6 - 3
        targets = torch.sin(inputs[:, :1]) * torch.cos(inputs[:, 1:])
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()  # the switch sums the buckets
        optimizer.step()  # changes the weights only if all sums are complete
        if manager.current_step() % 100 == 0:
            print(f"step {manager.current_step()}: {manager.num_participants()} replicas, loss {loss.item():.4f}", flush=True)
    manager.shutdown(wait=False)


if __name__ == "__main__":
    main()
