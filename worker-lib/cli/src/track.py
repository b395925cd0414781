"""Child process that forwards the values of a run to Weights & Biases. Each line of its standard input is JSON."""

import json
import os
import signal
import sys

# File in the run directory that contains the Weights & Biases id of the run, under which a resumed run continues.
ID_FILE = "wandb-run-id.txt"


def begin(wandb, request):
    """Begins a run, or continues the run whose id is stored in the run directory, and returns it."""
    path = os.path.join(request["dir"], ID_FILE)
    if request["continues"] and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            identity = {"id": file.read().strip(), "resume": "allow"}
    else:
        identity = {}
    names = ("project", "entity", "name", "dir", "config")
    run = wandb.init(**{name: request[name] for name in names}, **identity)
    with open(path, "w", encoding="utf-8") as file:
        file.write(run.id + "\n")
    return run


def main():
    # Ctrl-C reaches the whole process group; this process exits when the parent process closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Output printed by wandb must not mix with the answer.
    os.dup2(2, 1)

    def answer(kind, text):
        print(json.dumps({kind: text}), file=answers, flush=True)

    request = json.loads(sys.stdin.readline())
    try:
        import wandb
    except ImportError as error:
        text = f"{sys.executable} cannot import wandb ({error}); install it with: {sys.executable} -m pip install wandb"
        answer("error", text + ", or set ISWITCH_PYTHON to another interpreter")
        return
    if request["kind"] == "check":
        answer("ready", "")
        return
    try:
        run = begin(wandb, request)
    except Exception as error:
        answer("error", " ".join(f"wandb cannot begin the run: {type(error).__name__}: {error}".split()))
        return
    answer("ready", run.url or run.dir)
    for line in sys.stdin:
        row = json.loads(line)
        run.log(row["values"] | {"global_step": row["step"]}, step=row["step"])
    run.finish()


main()
