"""Inserts items through Reverb's own client without pause. Its output has the format of replay_writers.

Arguments: ADDRESS:PORT of the server, number of actors, bytes in an item, seconds before the measurement, measured seconds.
"""

import json
import sys
import threading
import time

import numpy
import reverb


def insert(address, payload, begin, end, latencies_ms):
    client = reverb.Client(address)
    # An actor sends all its items over one stream, as the documentation of Reverb recommends.
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        while True:
            asked = time.monotonic()
            if asked >= end:
                return
            writer.append({"x": payload})
            writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
            writer.flush()
            if begin <= asked:
                latencies_ms.append((time.monotonic() - asked) * 1e3)


def main():
    address, actors, len_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    payload = numpy.random.default_rng(0).integers(0, 256, len_bytes, dtype=numpy.uint8)
    begin = time.monotonic() + float(sys.argv[4])
    end = begin + float(sys.argv[5])
    latencies_ms = []
    arguments = (address, payload, begin, end, latencies_ms)
    threads = [threading.Thread(target=insert, args=arguments) for _ in range(actors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"latencies_ms": latencies_ms}))


main()
