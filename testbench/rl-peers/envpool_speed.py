#!/usr/bin/env python3
"""Measures the steps per second of EnvPool's environments under random actions, with one thread.

The counterpart for the environments of this project is the example environment_speed of iswitch-learn:

    python3 -m pip install envpool
    taskset -c 0 python3 testbench/rl-peers/envpool_speed.py
"""

import argparse
import time

import envpool
import numpy as np

TASKS = [
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "MountainCarContinuous-v0",
    "Hopper-v5",
    "Walker2d-v5",
    "HalfCheetah-v5",
    "LunarLander-v3",
    "LunarLanderContinuous-v3",
]


def measure(task, environments, seconds):
    """Returns the steps per second of elapsed time and per second of CPU time of this process."""
    pool = envpool.make(task, env_type="gymnasium", num_envs=environments, num_threads=1, seed=1)
    space = pool.action_space
    generator = np.random.default_rng(1)
    if hasattr(space, "n"):
        batches = generator.integers(space.n, size=(64, environments)).astype(np.int32)
    else:
        batches = generator.uniform(space.low, space.high, size=(64, environments, *space.shape))
        batches = batches.astype(np.float32 if space.dtype == np.float32 else np.float64)
    pool.reset()
    begin, cpu_begin, rounds = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        for batch in batches:
            pool.step(batch)
        rounds += len(batches)
    steps = rounds * environments
    return steps / (time.perf_counter() - begin), steps / (time.process_time() - cpu_begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, default=16, help="number of environments in the pool")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each measurement")
    parser.add_argument("tasks", nargs="*", default=TASKS, help="ids of environments")
    arguments = parser.parse_args()
    print(f"EnvPool {envpool.__version__}, {arguments.environments} environments, 1 thread")
    print(f"{'steps per second':<28}{'elapsed':>14}{'CPU time':>14}")
    known = set(envpool.list_all_envs())
    for task in arguments.tasks:
        versions = [task, task.rsplit("-v", 1)[0] + "-v4", task.rsplit("-v", 1)[0] + "-v2"]
        found = next((version for version in versions if version in known), None)
        if found is None:
            print(f"{task:<28} unknown to this version of EnvPool")
            continue
        elapsed, cpu = measure(found, arguments.environments, arguments.seconds)
        print(f"{found:<28}{elapsed:>14,.0f}{cpu:>14,.0f}")


if __name__ == "__main__":
    main()
