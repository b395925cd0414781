"""The `iswitch/Coflow-v0` environment."""

from os import PathLike

from iswitch import _studies
from iswitch.studies._environment import StudyEnv, check_counts


class CoflowEnv(StudyEnv):
    """Scheduling of coflows on a fabric: `iswitch/Coflow-v0`.

    Whenever rates are computed, the agent chooses the ready coflow with the highest priority, then the one with the
    next priority, and so on, until one is left. Time advances after the last choice. The rows are the ready coflows
    that have not been chosen yet, in the order in which they became ready. The episode terminates when all jobs are
    complete. The reward is the negative of the time since the previous decision, in seconds, multiplied by the share of
    the episode's jobs that have arrived and are not complete. Hence the sum of the rewards is the negative of the mean
    job completion time in seconds (`mean_jct_s`).

    Args:
        jobs: Number of jobs in an episode; 20 by default.
        interarrival_s: Mean time in seconds between the arrivals of jobs, which form a Poisson process; 20 by default.
            With 0, all jobs arrive at once.
        trace: Coflow file in the format of the coflow benchmark (FB2010); by default, coflows are synthetic. Without
            `dags` and `jobs`, each coflow is a job and arrives at the time in the file.
        dags: File of job shapes: lines `NODES EDGES A B A B ...`, or Alibaba's 2018 table of batch tasks. By default,
            shapes are synthetic.
        job_file: JSON file of jobs, as written by `iswitch coflow evaluate --export-jobs`.
        fabric_file: TOML file that describes unequal ports, and racks with oversubscribed links, as for `--fabric` of
            `iswitch coflow`. Synthetic coflows use all ports of this fabric; other jobs must have as many ports as the
            fabric.
        ports: Number of ingress ports and number of egress ports for synthetic coflows; 20 by default.
        capacity_gbit: Capacity of each port, in Gbit/s, unless `fabric_file` specifies it.
        rates: Model of the flow rates: "backfill" or "blocking".
        sharing: Rule by which coflows share the fabric in the chosen order: "madd" (Varys), "greedy" (Sincronia) or
            "greedy-per-flow".
        candidates: Number of rows, 2 to 4096. If more coflows are ready, only the first of them are candidates.
        invalid: "replace" to replace an invalid action with the next valid row, or "error" to raise an error.

    Raises:
        ValueError: If an argument is out of range or conflicts with another, or a file is not valid.
        FileNotFoundError: If a file does not exist.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        interarrival_s: float | None = None,
        trace: str | PathLike[str] | None = None,
        dags: str | PathLike[str] | None = None,
        job_file: str | PathLike[str] | None = None,
        fabric_file: str | PathLike[str] | None = None,
        ports: int | None = None,
        capacity_gbit: float = 1.0,
        rates: str = "backfill",
        sharing: str = "madd",
        candidates: int = 32,
        invalid: str = "replace",
    ) -> None:
        check_counts(jobs=jobs, ports=ports, candidates=candidates)
        simulator = _studies.coflow(
            jobs=jobs,
            interarrival_s=interarrival_s,
            trace=trace,
            dags=dags,
            job_file=job_file,
            fabric_file=fabric_file,
            ports=ports,
            capacity_gbit=capacity_gbit,
            rates=rates,
            sharing=sharing,
            candidates=candidates,
        )
        super().__init__(simulator, invalid)
