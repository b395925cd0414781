"""The proofs of each module, and the faults that the proofs must find. Module paths are relative to `iswitch_accel`."""

from dataclasses import dataclass, field

QUEUES = {
    path: f"datapath/{path}"
    for path in ("ingress/beats", "ingress/lasts", "ingress/headers", "decisions", "results", "templates", "bursts",
                 "places", "sums", "leaving", "requests/repeater/lates", "requests/repeater/helps")
}


@dataclass(frozen=True)
class Proof:
    """One run of SymbiYosys. `mode`: `prove` is k-induction with k = `depth`, which covers unlimited time; `bmc` checks
    the first `depth` cycles after power-up; `cover` requires that each covered state is reached within `depth` cycles.
    """

    name: str
    says: str
    top: str
    depth: int
    mode: str = "prove"
    # Maps the path of a module to the files with its properties.
    properties: dict = field(default_factory=dict)
    # Paths of modules whose outputs may have any values.
    cut: tuple = ()
    # Treatment of the rules for the senders and receivers of queues: `assume` allows any senders and receivers that
    # follow the rules, and `assert` checks that the real ones follow them.
    rule: str = "assume"
    # Fault to insert: path of the module, pattern, replacement. The proof must then fail.
    fault: tuple = None
    # Whether the proof takes minutes. Such a proof runs only by name or with --slow.
    slow: bool = False


def queue(path, name):
    """Returns the proof of a single queue with the properties common to all queues."""
    top = QUEUES[path]
    return Proof(
        name, f"queue {path}: bounds, order, valid and data stable; any sender within the margin", top, 3,
        properties={top: ("fifo.v",)}, cut=(f"{top}/ram",),
    )


def queues_in(top, name, says, depth, paths, cut):
    """Returns the proof of several queues together with their real senders and receivers."""
    rams = tuple(f"{QUEUES[path]}/ram" for path in paths)
    return Proof(
        name, says, top, depth, properties={QUEUES[path]: ("fifo.v",) for path in paths}, cut=(*cut, *rams),
        rule="assert",
    )


SCOREBOARD = "datapath/accumulator/scoreboard"
LOOP = tuple(f"datapath/accumulator/{part}" for part in ("adders", "buffer", "first_zero"))
PARTS = ("ingress", "control", "requests", "counter", "decisions", "results", "templates", "separator", "bursts", "places",
         "accumulator", "sums", "output_module", "merge", "leaving")


def all_but(*kept):
    """Returns the paths of all parts of the datapath except the given ones."""
    return tuple(f"datapath/{part}" for part in PARTS if part not in kept)


def proof(name, says, top, depth, *files, **more):
    """Returns a proof with properties in one module."""
    return Proof(name, says, top, depth, properties={top: files}, **more)


COUNTER = "datapath/counter"
STEP = {
    COUNTER: ("counter_steps.v", "seg_counter.v"),
    f"{COUNTER}/lookup": ("seg_lookup.v",),
    f"{COUNTER}/lookup/slots": ("slot_table.v",),
}
OUTPUT = "datapath/output_module"
WORDS = (f"{COUNTER}/lookup/slots/words", f"{COUNTER}/lookup/slots/copy")
SUMS = queues_in(
    "datapath", "credit", "the sums queue never overflows: the scoreboard's credit suffices", 14, ("sums",),
    (*all_but("accumulator", "sums", "output_module"), *LOOP),
)

BURSTS = queues_in(
    "datapath", "bursts", "the queues of bursts and of their addresses never overflow", 9,
    ("bursts", "places"), (*all_but("separator", "bursts", "places", "accumulator"), *LOOP),
)
BURSTS.properties["datapath"] = ("bursts.v",)
INGRESS = queues_in(
    "datapath/ingress", "ingress", "the queues of beats and headers never overflow while `tready` is set", 8,
    ("ingress/beats", "ingress/lasts", "ingress/headers"), ("datapath/ingress/member_table",),
)
INGRESS.properties["datapath/ingress"] = ("ingress.v",)
DECIDED = queues_in(
    "datapath", "decided", "the queues of decisions and results never overflow", 9, ("decisions", "results"),
    (*all_but("counter", "decisions", "results", "separator", "output_module"),
     f"{COUNTER}/lookup", "datapath/separator/slicer", "datapath/output_module/header"),
)
DECIDED.properties.update({COUNTER: ("counter_steps.v",), "datapath": ("decided.v",)})

REPEATER = queues_in(
    "datapath/requests/repeater", "repeater", "each request for a result is taken or discarded once; no queue overflows", 5,
    ("requests/repeater/lates", "requests/repeater/helps"), (),
)
REPEATER.properties["datapath/requests/repeater"] = ("repeater.v",)
GATE = "datapath/requests/gate"
BUDGET = "datapath/requests/budgets"

PROOFS = [
    proof("scoreboard", "no burst is issued while its address is in flight, nor without credit; bounded wait",
          SCOREBOARD, 3, "scoreboard.v"),
    proof("scoreboard-reached", "a hazard and then an issue, one burst per cycle, a wait for credit", SCOREBOARD, 24,
          "scoreboard.v", mode="cover"),
    # One queue of each shape.
    *(queue(path, "queue-" + path.split("/")[-1])
      for path in ("ingress/beats", "ingress/headers", "decisions", "sums", "leaving")),
    proof("queue-reached", "the queue is full except for the margin, then empty", QUEUES["decisions"], 44, "fifo.v",
          mode="cover", cut=(QUEUES["decisions"] + "/ram",)),
    proof("memory-lut", "a read returns the value that was last written", QUEUES["sums"] + "/ram", 2, "lut_ram.v"),
    proof("memory-block", "a read returns the value that was last written", WORDS[0], 2, "block_ram.v"),
    SUMS,
    INGRESS,
    DECIDED,
    BURSTS,
    queues_in("datapath", "leaving", "the output queue never overflows; m_axis conforms to AXI-Stream", 4,
              ("leaving",), all_but("merge", "leaving")),
    Proof("seg-counter", "each step preserves the rules for contributors, totals and H; one decision for each frame",
          COUNTER, 9, properties=STEP, cut=WORDS),
    Proof("seg-counter-reached", "a segment is completed or finished by the host, a duplicate is refused",
          COUNTER, 14, "cover", properties=STEP, cut=WORDS),
    proof("result-header", "length and tkeep of a result are correct; its header is stable",
          f"{OUTPUT}/header", 6, "result_header.v"),
    proof("output", "results conform to AXI-Stream: stable, tkeep contiguous, tlast according to the length",
          OUTPUT, 3, "output_module.v", cut=(f"{OUTPUT}/header",)),
    proof("output-reached", "two results with pauses", OUTPUT, 32, "output_module.v", mode="cover",
          cut=(f"{OUTPUT}/header",)),
    proof("merge", "packets are not interleaved, lost or invented; a result waits for at most one packet",
          "datapath/merge", 3, "merge.v", "merge_fair.v"),
    proof("merge-reached", "a result between two ordinary packets", "datapath/merge", 12, "merge.v", mode="cover"),
    REPEATER,
    proof("request-gate",
          "one request at a time, only while the output is free; requests from the host first, results while no frame waits",
          GATE, 3, "request_gate.v"),
    proof("request-gate-reached", "the host's request, then a repeated result", GATE, 40, "request_gate.v", mode="cover"),
    proof("budget", "each request counts once; no member spends more than its budget", BUDGET, 4, "budget.v",
          cut=(f"{BUDGET}/spent",)),
    proof("budget-reached", "a budget is spent, then restored by a result", BUDGET, 44, "budget.v", mode="cover",
          cut=(f"{BUDGET}/spent",)),
    proof("axi-lite", "one response for each request, held until it is accepted", "axi", 5, "axi_lite.v"),
    proof("axi-lite-reached", "a read after a write", "axi", 12, "axi_lite.v", mode="cover"),
]


def fault(name, says, proof_name, depth, path, old, new, slow=False):
    """Returns a proof that must fail within `depth` cycles after power-up, because of a fault in a module."""
    base = next(proof for proof in PROOFS if proof.name == proof_name)
    return Proof("fault-" + name, says, base.top, depth, "bmc", base.properties, base.cut, base.rule,
                 (path, old, new), slow)


FAULTS = [
    fault("scoreboard-last", "the oldest entry is not compared", "scoreboard", 16, SCOREBOARD,
          r"if \(hits\$8\)", "if (1'b0)"),
    fault("scoreboard-credit", "a burst is issued without credit", "scoreboard", 8, SCOREBOARD,
          r"credit \| ~waiting_flags", "1'b1 | ~waiting_flags"),
    fault("queue-margin", "a queue keeps no slot free", "queue-decisions", 24, QUEUES["decisions"],
          r"limit = 8'hc;", "limit = 8'h10;"),
    fault("credit-margin", "the sums queue keeps only one slot free", "credit", 60, QUEUES["sums"],
          r"limit = 8'h12;", "limit = 8'h1f;", slow=True),
    fault("merge-room", "a result that waits for room loses its turn", "merge", 12, "datapath/merge",
          r"\(~lacked_room\$q & ~proceeds & ~midway\$q\)", "(~proceeds & ~midway$q)"),
    fault("output-valid", "valid falls before the beat is accepted", "output", 12, OUTPUT,
          r"OutputState\$Tail:\n( *)begin\n( *)if \(ready\)", r"OutputState$Tail:\n\1begin\n\2if (1'b1)"),
    fault("output-spill", "the last beat of some lengths is missing", "output", 14, OUTPUT,
          r"spills\$d = before_last\[32'h2\] \|", "spills$d = "),
    fault("merge-midway", "a result may begin inside a packet", "merge", 8, "datapath/merge",
          r"\(~lacked_room\$q & ~proceeds & ~midway\$q\)", "(~lacked_room$q & ~proceeds)"),
    fault("counter-duplicate", "a member may contribute twice", "seg-counter", 12, f"{COUNTER}/lookup/verdict",
          r"weighed\$d\[\(64'h2\)\+:\(1\)\] = entry\[\(64'h0\)\+:\(1\)\] &", "weighed$d[(64'h2)+:(1)] = 1'b0 &"),
    fault("counter-total", "a total that does not fit is summed", "seg-counter", 12, f"{COUNTER}/lookup/verdict",
          r"= new_total\[32'h10\] \| &new_total\[\(32'h0\)\+:\(16\)\]", "= 1'b0"),
    fault("counter-bank", "the segments that use a slot share one bank", "seg-counter", 12, f"{COUNTER}/lookup/verdict",
          r"held_bank\$d = entry.*;", "held_bank$d = 1'b0;"),
    fault("gate-pause", "a request is offered before the output reflects the last one", "request-gate", 24, GATE,
          r"pause\$d = 32'hf;", "pause$d = 32'h3;"),
    fault("gate-quiet", "a result is repeated while frames wait", "request-gate", 24, GATE,
          r"repeat_waits = repeat_valid & quiet;", "repeat_waits = repeat_valid;"),
    fault("budget-request", "a request is not counted", "budget", 24, BUDGET,
          r"has_spent\$d = \|\(pending\$q & own\);", "has_spent$d = 1'b0;"),
    fault("repeater-over", "a request is offered although the budget is spent", "repeater", 24, REPEATER.top,
          r"valid = checked\$q & ~over\$q;", "valid = checked$q;"),
]
