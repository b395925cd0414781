"""The environment `iswitch/Coflow-v0`."""

from os import PathLike

from iswitch import _studies
from iswitch.studies._environment import StudyEnv, check_counts


class CoflowEnv(StudyEnv):
    """Scheduling of coflows on a fabric: `iswitch/Coflow-v0`.

    Whenever rates are computed, the agent chooses the coflow with the highest priority among those that are ready, then
    the next one, until one is left. Time passes after the last choice. The rows are the ready coflows that were not
    chosen, in the order in which they became ready. The episode terminates when all jobs are complete. The reward is
    minus the seconds since the previous decision, multiplied by the share of the episode's jobs that have arrived and
    are not complete. Hence the sum of rewards is minus the mean job completion time in seconds (`mean_jct_s`).

    Args:
        jobs: Number of jobs of an episode; 20 by default.
        interarrival_s: Mean time in seconds between the arrivals of jobs, a Poisson process; 0 for jobs that arrive at
            once, 20 by default.
        trace: File of coflows in the format of the coflow benchmark (FB2010); by default, coflows are synthetic. Without
            `dags` and `jobs`, each coflow is a job and arrives at the time in the file.
        dags: File of the shapes of jobs: lines `NODES EDGES A B A B ...`, or Alibaba's table of batch tasks of 2018. By
            default, shapes are synthetic.
        job_file: JSON file of jobs, which `iswitch coflow evaluate --export-jobs` writes.
        fabric_file: TOML file of unequal ports, and of racks with oversubscribed links, as for `--fabric` of
            `iswitch coflow`. Synthetic coflows use its number of ports; other jobs must have the same number.
        ports: Number of ingress ports and of egress ports of synthetic coflows; 20 by default.
        capacity_gbit: Capacity of each port, in Gbit/s, unless `fabric_file` states it.
        rates: Model of the rates of flows: "backfill" or "blocking".
        sharing: Rule by which coflows share the fabric in the chosen order: "madd" (Varys), "greedy" (Sincronia) or
            "greedy-per-flow".
        candidates: Number of rows, 2 to 4096. If more coflows are ready, the first of them are candidates.
        invalid: "replace" to replace an action that is not valid with the next valid row, or "error".

    Raises:
        ValueError: If an argument is out of range or contradicts another, or a file is not valid.
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
