"""External coflow policy: smallest effective bottleneck first (Varys).

    iswitch coflow compare sebf job-sebf "mine=python3 sebf.py" --jobs 50

The coflow that needs the shortest time at its busiest port is sent first. With `need_s` of the coflow's job instead of
`bottleneck_s`, the rule is that of job-sebf. docs/studies.md describes the requests and answers.
"""

import json
import sys


def answer(request):
    if "describe" in request:
        return {}
    coflows = sorted(request["coflows"], key=lambda coflow: (coflow["bottleneck_s"], coflow["id"]))
    return {"order": [coflow["id"] for coflow in coflows], "sharing": "madd"}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
