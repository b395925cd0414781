"""External routing policy: join the shortest queue.

    iswitch route compare rand jsq "mine=python3 jsq.py"

Each packet takes the idle link to the switch at which the queue of its class is shortest; of several such links, it takes
the one with the lowest number. The heads of all queues choose first, then the packets behind them. docs/studies.md
describes the requests and answers.
"""

import json
import sys


def links_of(waiting, next_stage):
    """Returns the class on each link of a switch. `waiting` is the number of packets of each class at the switch, and
    `next_stage[switch][class]` are the queue lengths at the other ends of the links."""
    links = [None] * len(next_stage)
    waiting = list(waiting)
    while any(waiting) and None in links:
        for number, count in enumerate(waiting):
            idle = [link for link, used in enumerate(links) if used is None]
            if count and idle:
                best = min(idle, key=lambda link: next_stage[link][number])
                links[best] = number
                waiting[number] -= 1
    return links


def answer(request):
    if "describe" in request:
        return {}
    queues = request["queues"]
    pairs = zip(queues, queues[1:])
    links = [[links_of(waiting, after) for waiting in stage] for stage, after in pairs]
    return {"links": links, "slot": request["slot"]}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
