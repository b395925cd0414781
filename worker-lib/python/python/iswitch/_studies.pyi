from os import PathLike
from typing import Any, TypeAlias, final

__all__ = ["Simulator", "coflow", "placement", "routing"]

_Path: TypeAlias = str | PathLike[str]
# Features of all candidates (float32), and whether each is valid (int8).
_Decision: TypeAlias = tuple[bytearray, bytearray]

@final
class Simulator:
    @property
    def features(self) -> list[str]: ...
    @property
    def candidates(self) -> int: ...
    @property
    def bounds(self) -> tuple[float, float]: ...
    def reset(self, draw: int) -> _Decision: ...
    def step(self, choice: int, replaces: bool) -> tuple[_Decision, float, bool, bool, bool]: ...
    def details(self) -> list[dict[str, float] | None]: ...
    def results(self) -> dict[str, float] | None: ...
    def rule_choice(self, rule: str) -> int: ...
    def run_rule(self, rule: str) -> dict[str, float]: ...

def routing(
    *,
    stages: int,
    switches: int | None,
    load: float | None,
    slots: int,
    rates_file: _Path | None,
    rates_draw: int | None,
    fill: str,
) -> Simulator: ...
def coflow(
    *,
    jobs: int | None,
    interarrival_s: float | None,
    trace: _Path | None,
    dags: _Path | None,
    job_file: _Path | None,
    fabric_file: _Path | None,
    ports: int | None,
    capacity_gbit: float,
    rates: str,
    sharing: str,
    candidates: int,
) -> Simulator: ...
def placement(options: dict[str, Any]) -> Simulator: ...
