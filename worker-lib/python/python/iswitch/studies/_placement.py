"""The `iswitch/Placement-v0` environment."""

from os import PathLike

from iswitch import _studies
from iswitch.studies._environment import StudyEnv, check_counts


class PlacementEnv(StudyEnv):
    """Placement of training jobs on GPUs that fail: `iswitch/Placement-v0`.

    When a job can start, the agent picks its GPUs one by one. The rows are the GPUs of the cluster; a GPU is valid if
    it is free and has not been picked yet. Time advances after the last pick. The episode terminates when all jobs are
    complete, and is truncated `horizon_days` days after the last arrival. The reward is the negative of the increase in
    the objective, in hours. For `completion-time`, the objective is the mean, over all jobs, of the time that a job has
    spent in the system: from its arrival until its completion or, if it is not complete, until now. For `makespan`, it
    is the simulated time. Hence, for an episode that terminates, the sum of the rewards is the negative of the mean
    completion time (`mean_jct_s`) or of the makespan (`makespan_s`), in hours.

    Args:
        gpus: Number of GPUs, 2 to 4096; 64 by default.
        gpus_per_node: Number of GPUs per node; 8 by default.
        cluster_file: CSV file of nodes, instead of `gpus` and `gpus_per_node`.
        nodes_per_rack: Number of nodes per rack; by default, all nodes are in one rack.
        racks_per_switch: Number of racks behind one switch.
        job_file: Job file: a CSV file with the columns arrival_s,gpus,duration_s, or a trace from Philly, Gavel,
            Alibaba (2023), Pollux or Tiresias. By default, jobs are synthetic and resemble Philly's.
        batch: Number of jobs that each draw samples; 60 by default. If the file has arrival times, the default is to use
            its jobs unchanged.
        interarrival_s: Mean time in seconds between the arrivals of sampled jobs; by default, they all arrive at once.
        shortest_s: Duration in seconds that jobs must exceed.
        longest_s: Duration in seconds that jobs must not reach.
        widest: Maximum number of GPUs of a job; larger jobs are excluded.
        throughputs: Gavel's simulation_throughputs.json, which a Gavel trace requires.
        gpu_type: GPU type whose throughputs are used.
        applications: Folder of Pollux's applications, which a Pollux workload requires.
        lives: Titan's file of failure histories, gc_full.csv, from which each draw samples GPUs. By default, histories
            are synthetic and resemble Titan's.
        node_faults: InfiniteHBD's file of node faults, which each draw replays from a random time.
        failures_file: CSV file of outages, gpu,begin_s,end_s, the same in each draw.
        rates_file: CSV file of failure rates, gpu,per_year,age_years, the same in each draw.
        node_rate: Random failures per node and year, each of which stops all GPUs of the node.
        rack_rate: Random failures per rack and year; see `nodes_per_rack`.
        switch_rate: Random failures per switch and year; see `racks_per_switch`.
        domain_repair_s: Time in seconds until a node, rack or switch that failed at random is repaired.
        knowledge: Knowledge of the failure rates in the observation: "rates", or "lives" for estimates based on the
            failure histories and the failures in the episode.
        gpus_of_draw: Draw whose GPUs are used in all episodes; by default, each draw has its own GPUs.
        rate_factor: Factor by which all failure rates are multiplied.
        checkpoint: "young-daly", "none", or the time between two checkpoints, in seconds of work. The default is
            "young-daly", or "none" if no failure rates are known.
        checkpoint_cost_s: Time in seconds that a job pauses for each checkpoint.
        restart_s: Duration of a restart, in seconds.
        restart_per_gpu_s: Additional duration of a restart for each GPU of the job, in seconds.
        repair_s: Time in seconds until a failed GPU is repaired.
        queueing: Rule for starting other jobs in the queue while too few GPUs are free for the first job: "strict",
            "first-fit" or "easy".
        after_failure: "place-again" to place a stopped job again, or "wait-for-repair" to let it keep its GPUs.
        spares: Number of GPUs that only jobs stopped by a failure may use.
        spread_slowdown: Factor by which a job takes longer if it runs on more nodes than it needs.
        horizon_days: End of the simulation, in days after the last arrival.
        order: Order of the queue: "arrival" or "longest-first".
        objective: "completion-time" or "makespan".
        invalid: "replace" to replace an invalid action with the next valid row, or "error" to raise an error.

    Raises:
        ValueError: If an argument is out of range or conflicts with another, or a file is not valid.
        FileNotFoundError: If a file does not exist.
    """

    def __init__(
        self,
        *,
        gpus: int | None = None,
        gpus_per_node: int | None = None,
        cluster_file: str | PathLike[str] | None = None,
        nodes_per_rack: int | None = None,
        racks_per_switch: int = 4,
        job_file: str | PathLike[str] | None = None,
        batch: int | None = None,
        interarrival_s: float | None = None,
        shortest_s: float | None = None,
        longest_s: float | None = None,
        widest: int | None = None,
        throughputs: str | PathLike[str] | None = None,
        gpu_type: str = "v100",
        applications: str | PathLike[str] | None = None,
        lives: str | PathLike[str] | None = None,
        node_faults: str | PathLike[str] | None = None,
        failures_file: str | PathLike[str] | None = None,
        rates_file: str | PathLike[str] | None = None,
        node_rate: float = 0.0,
        rack_rate: float = 0.0,
        switch_rate: float = 0.0,
        domain_repair_s: float = 14400.0,
        knowledge: str = "rates",
        gpus_of_draw: int | None = None,
        rate_factor: float = 1.0,
        checkpoint: str | float | None = None,
        checkpoint_cost_s: float = 60.0,
        restart_s: float = 600.0,
        restart_per_gpu_s: float = 0.0,
        repair_s: float = 3600.0,
        queueing: str = "easy",
        after_failure: str = "place-again",
        spares: int = 0,
        spread_slowdown: float = 1.0,
        horizon_days: float = 400.0,
        order: str = "arrival",
        objective: str = "completion-time",
        invalid: str = "replace",
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ("self", "invalid", "__class__")}
        counts = ("gpus", "gpus_per_node", "nodes_per_rack", "racks_per_switch", "batch", "widest", "gpus_of_draw", "spares")
        check_counts(**{name: options[name] for name in counts})
        super().__init__(_studies.placement(options), invalid)
