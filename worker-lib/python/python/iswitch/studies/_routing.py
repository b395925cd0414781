"""The `iswitch/Routing-v0` environment."""

from os import PathLike

from iswitch import _studies
from iswitch.studies._environment import StudyEnv, check_counts


class RoutingEnv(StudyEnv):
    """Packet routing in a multi-stage network: `iswitch/Routing-v0`.

    Each decision selects the link for a packet that can take more than one link of its switch; the candidates are the
    links: row N is the link to switch N of the next stage. The episode is truncated after `slots` slots. The reward is
    the negative of a cost, summed over the slots that have begun since the previous decision. The cost of a slot is the
    number of packets in the network in excess of a lower bound that holds for every policy, divided by the number of
    links between two stages. Hence the sum of the rewards is the negative of the mean delay in excess of the bound, in
    slots (`delay_slots` minus `bound_delay_slots` of the results), multiplied by `slots` and by the load.

    Args:
        stages: Number of stages, 2 to 16.
        switches: Number of switches per stage, 2 to 256; 4 by default, or the number in `rates_file`. The number of
            classes and the number of links per switch are the same.
        load: Sum of the arrival rates divided by the number of links between two stages, above 0 and below 1; 0.8 by
            default.
        slots: Number of slots of an episode, which begins with an empty network.
        rates_file: CSV file of arrival rates in packets per slot, with a line for each switch of the first stage. By
            default, the rates of each draw are sampled uniformly and rescaled to the load.
        rates_draw: Draw whose rates are used in all episodes; by default, each draw has its own rates.
        fill: Choice of link for packets behind the head of a queue, under the rules jsq, po2 and drill: "random" or
            "rule".
        invalid: "replace" to replace an invalid action with the next valid row, or "error" to raise an error.

    Raises:
        ValueError: If an argument is out of range, or the file is not valid.
        FileNotFoundError: If a file does not exist.
    """

    def __init__(
        self,
        *,
        stages: int = 3,
        switches: int | None = None,
        load: float | None = None,
        slots: int = 200,
        rates_file: str | PathLike[str] | None = None,
        rates_draw: int | None = None,
        fill: str = "random",
        invalid: str = "replace",
    ) -> None:
        check_counts(stages=stages, switches=switches, slots=slots, rates_draw=rates_draw)
        simulator = _studies.routing(
            stages=stages,
            switches=switches,
            load=load,
            slots=slots,
            rates_file=rates_file,
            rates_draw=rates_draw,
            fill=fill,
        )
        super().__init__(simulator, invalid)
