"""Trains with 32-bit and with 16-bit elements in the packets, and compares the outcomes over several seeds.

    python benchmarks/elements.py [--seeds 10] [--first-seed 1] [--ranks 2]

Two training runs, described below, are repeated with each element type and each seed, on loopback. The ranks of a run
start a private switch.

- A character model (a two-layer transformer) is trained on this repository's documentation, through
  DistributedDataParallel over the switch. The outcome is the mean loss of the last 20 steps, in nats per character.
- `examples/ppo.py` runs on CartPole. The outcome is the mean return of the last 20 episodes of rank 0.

The table gives the mean over the seeds with its 95 % bootstrap interval, and the lowest and highest outcome.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve()
PPO = HERE.parents[1] / "examples" / "ppo.py"
DOCUMENTATION = HERE.parents[3] / "docs"
ELEMENTS = ("f32", "bf16", "f16")

CONTEXT = 64  # characters
WIDTH = 64
HEADS = 4
LAYERS = 2
BATCH = 16  # sequences per rank and step
STEPS = 300
LAST = 20  # steps whose mean loss is the outcome


def train_characters(seed: int) -> None:
    """Runs one rank of the character model; rank 0 prints the outcome."""
    import torch
    import torch.distributed as dist
    from torch import nn

    import iswitch.torch  # noqa: F401: registers the backend

    class Model(nn.Module):
        def __init__(self, characters: int) -> None:
            super().__init__()
            self.characters = nn.Embedding(characters, WIDTH)
            self.positions = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, characters)
            self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)

        def forward(self, text: torch.Tensor) -> torch.Tensor:
            return self.head(self.layers(self.characters(text) + self.positions, mask=self.mask, is_causal=True))

    torch.set_num_threads(1)
    dist.init_process_group("iswitch")
    text = "".join(path.read_text() for path in sorted(DOCUMENTATION.glob("*.md")))
    alphabet = {character: number for number, character in enumerate(sorted(set(text)))}
    data = torch.tensor([alphabet[character] for character in text])
    torch.manual_seed(seed)
    model = nn.parallel.DistributedDataParallel(Model(len(alphabet)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(seed * 1000 + dist.get_rank())
    losses = []
    for _ in range(STEPS):
        begins = torch.randint(len(data) - CONTEXT, (BATCH, 1), generator=batches)
        sequences = data[begins + torch.arange(CONTEXT + 1)]
        optimizer.zero_grad()
        logits = model(sequences[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), sequences[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if dist.get_rank() == 0:
        print(statistics.mean(losses[-LAST:]))
    dist.destroy_process_group()


def outcome(options: argparse.Namespace, command: list[str], element: str) -> float:
    """Runs all ranks of one training run with a separate switch; returns the last number that rank 0 prints."""
    ranks = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={options.ranks}"]
    variables = {"ISWITCH_SWITCH": "auto", "ISWITCH_WIRE": element, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *ranks, *command], env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"a rank of {command} failed")
    return float(done.stdout.split()[-1])


def row(training: str, element: str, outcomes: list[float]) -> str:
    draws = random.Random(0)
    means = sorted(statistics.mean(draws.choices(outcomes, k=len(outcomes))) for _ in range(10_000))
    columns = [training, element, f"{statistics.mean(outcomes):.6g} ({means[250]:.6g} to {means[-251]:.6g})"]
    columns += [f"{min(outcomes):.6g} to {max(outcomes):.6g}"]
    return "| " + " | ".join(columns) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=1, help="first seed; the others follow it")
    parser.add_argument("--ranks", type=int, default=2, help="number of ranks in each training run")
    parser.add_argument("--ppo-steps", type=int, default=100_000, help="environment steps of PPO, over all ranks")
    parser.add_argument("--rank-of-seed", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank_of_seed is not None:
        return train_characters(options.rank_of_seed)
    trainings: dict[str, Callable[[int], list[str]]] = {
        "characters": lambda seed: [str(HERE), "--rank-of-seed", str(seed)],
        "PPO": lambda seed: [str(PPO), "--seed", str(seed), "--steps", str(options.ppo_steps)],
    }
    outcomes: dict[tuple[str, str], list[float]] = {(name, element): [] for name in trainings for element in ELEMENTS}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for (name, element), seen in outcomes.items():
            seen.append(outcome(options, trainings[name](seed), element))
            print(f"seed {seed}: {name}, {element}: {seen[-1]:.6g}", file=sys.stderr, flush=True)
    print("| training | elements | mean (95 % interval) | lowest to highest |\n|---|---|---|---|")
    for (name, element), seen in outcomes.items():
        print(row(name, element, seen))


if __name__ == "__main__":
    main()
