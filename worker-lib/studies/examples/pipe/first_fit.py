"""External placement policy: first in, first out, on the free GPUs with the lowest ids.

    iswitch place compare first-fit reliable "mine=python3 first_fit.py" --queueing first-fit

Every waiting job that fits starts, even if an earlier job does not fit. docs/studies.md describes the requests and
answers.
"""

import json
import sys


def answer(request):
    if "describe" in request:
        return {}
    free = [gpu for gpu, entry in enumerate(request["gpus"]) if entry["state"] == "free"]
    start = []
    for job in request["jobs"]:
        if "on" not in job and job["gpus"] <= len(free):
            start.append({"job": job["id"], "gpus": free[: job["gpus"]]})
            free = free[job["gpus"] :]
    return {"suspend": [], "start": start}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
