#!/usr/bin/env python3
"""Compares the training speed of `iswitch train`, Stable-Baselines3 and CleanRL, in environment steps per second.

Each contender is one process with one thread. The contenders run in interleaved turns, with the same sizes of
networks, batches and rollouts. The time begins when a program has loaded. Needs a Python interpreter with
`pip install stable-baselines3 'gymnasium[mujoco]' tyro tensorboard`, and a clone of
https://github.com/vwxyzjn/cleanrl.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ENVIRONMENTS = {"ppo": "Hopper-v5", "ddpg": "HalfCheetah-v5"}
SB3 = """
import json, sys, time, torch, gymnasium as gym
from stable_baselines3 import DDPG, PPO
torch.set_num_threads(1)
algorithm, env, steps, starts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if algorithm == "ppo":
    model = PPO("MlpPolicy", gym.make(env), n_steps=2048, batch_size=64, n_epochs=10, device="cpu", seed=1)
else:
    model = DDPG("MlpPolicy", gym.make(env), batch_size=256, learning_starts=starts, device="cpu", seed=1,
                 policy_kwargs={"net_arch": [256, 256]})
begin = time.perf_counter()
model.learn(steps)
print(json.dumps({"steps": steps, "seconds": time.perf_counter() - begin}))
"""
# Sizes of the DDPG networks of CleanRL and Stable-Baselines3; `iswitch train` also normalises layers.
DDPG_SIZES = ["--set", "hidden=[256,256]", "--set", "batch_size=256", "--set", "policy_delay=2"]


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iswitch", default="target/release/iswitch", help="path of the iswitch command (default: %(default)s)")
    parser.add_argument("--python", default=sys.executable, help="Python interpreter with the peers (default: this one)")
    parser.add_argument("--cleanrl", help="directory of the clone of CleanRL (default: CleanRL is not measured)")
    parser.add_argument("--algorithms", nargs="+", default=["ppo", "ddpg"], choices=["ppo", "ddpg"],
                        help="algorithms to train (default: both)")
    parser.add_argument("--turns", type=int, default=3, help="number of interleaved runs of each contender (default: %(default)s)")
    parser.add_argument("--ppo-steps", type=int, default=65536, help="environment steps of a PPO run (default: %(default)s)")
    parser.add_argument("--ddpg-steps", type=int, default=12000, help="environment steps of a DDPG run (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser.parse_args()


def run(command, directory):
    """Runs a command with one thread, and returns its output."""
    one = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    done = subprocess.run(command, cwd=directory, env=os.environ | one, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} ...: exit status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def iswitch(options, algorithm, steps, starts, directory):
    """Returns the steps per second of `iswitch train` with one worker and no switch."""
    command = [os.path.abspath(options.iswitch), "train", algorithm, "--env", ENVIRONMENTS[algorithm], "--workers", "1",
               "--steps", str(steps), "--json", "--quiet", "--out", f"{directory}/run", "--force", "--checkpoint-every", "0"]
    command += ["--environments", "1"]
    if algorithm == "ddpg":
        command += [*DDPG_SIZES, "--set", f"learning_starts={starts}"]
    result = json.loads(run(command, directory))
    return result["steps"] / result["seconds"]


def stable_baselines3(options, algorithm, steps, starts, directory):
    """Returns the steps per second of the method `learn`."""
    command = [options.python, "-c", SB3, algorithm, ENVIRONMENTS[algorithm], str(steps), str(starts)]
    result = json.loads(run(command, directory).splitlines()[-1])
    return result["steps"] / result["seconds"]


def cleanrl(options, algorithm, steps, starts, directory):
    """Returns the last speed that CleanRL prints, which covers the run from its start."""
    script = os.path.join(os.path.abspath(options.cleanrl), "cleanrl", f"{algorithm}_continuous_action.py")
    command = [options.python, script, "--env-id", ENVIRONMENTS[algorithm], "--total-timesteps", str(steps), "--no-cuda"]
    if algorithm == "ddpg":
        command += ["--learning-starts", str(starts)]
    return float(re.findall(r"SPS: (\d+)", run(command, directory))[-1])


def main():
    """Runs all contenders in interleaved turns, and prints the result."""
    options = arguments()
    contenders = {"iswitch": iswitch, "Stable-Baselines3": stable_baselines3}
    if options.cleanrl:
        contenders["CleanRL"] = cleanrl
    results = {}
    sizes = {"ppo": (options.ppo_steps, 0), "ddpg": (options.ddpg_steps, 2000)}
    for algorithm in options.algorithms:
        steps, starts = sizes[algorithm]
        speeds = {name: [] for name in contenders}
        for turn in range(options.turns):
            names = list(contenders)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                with tempfile.TemporaryDirectory() as directory:
                    speeds[name].append(contenders[name](options, algorithm, steps, starts, directory))
                print(f"{algorithm}, turn {turn + 1}, {name}: {speeds[name][-1]:.0f} steps/s", file=sys.stderr)
        results[algorithm] = speeds
    if options.json:
        print(json.dumps(results))
        return
    print("| | steps/s | speed-up of iswitch |\n|---|---|---|")
    for algorithm, speeds in results.items():
        for name, values in speeds.items():
            ratios = [ours / theirs for ours, theirs in zip(speeds["iswitch"], values)]
            print(f"| {algorithm.upper()}, {name} | {statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"
                  f" | {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |")


if __name__ == "__main__":
    main()
