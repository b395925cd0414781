"""Inserts and samples items with Reverb's own client. Reads one JSON command per line, and answers with one line of JSON.

Argument: ADDRESS:PORT of the server. ["insert", length, byte, priority] inserts an item of `length` equal bytes.
["steps", n] inserts an item of n steps of two bytes. ["sample", n] samples n items, and reports the length, the sum
of the bytes and the priority of each.
"""

import json
import sys

import numpy
import reverb


def insert(client, payload, priority):
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        writer.append({"x": payload})
        writer.create_item("t", priority, {"x": writer.history["x"][-1:]})
        writer.flush()


def insert_steps(client, steps):
    with client.trajectory_writer(num_keep_alive_refs=steps) as writer:
        for step in range(steps):
            writer.append({"x": numpy.array([step, 255 - step], dtype=numpy.uint8)})
        writer.create_item("t", 1.0, {"x": writer.history["x"][:]})
        writer.flush()


def sample(client, count):
    drawn = []
    for sample in client.sample("t", count, emit_timesteps=False):
        payload = sample.data[0]
        drawn.append(
            {"len": payload.size, "sum": int(payload.astype(numpy.int64).sum()), "priority": sample.info.priority}
        )
    return drawn


def main():
    client = reverb.Client(sys.argv[1])
    for line in sys.stdin:
        words = json.loads(line)
        answer = None
        if words[0] == "insert":
            insert(client, numpy.full(words[1], words[2], dtype=numpy.uint8), words[3])
        elif words[0] == "steps":
            insert_steps(client, words[1])
        else:
            answer = sample(client, words[1])
        print(json.dumps(answer), flush=True)


main()
