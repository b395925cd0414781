"""Tests of the Gymnasium environments of the studies."""

import copy
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="pip install gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from iswitch.studies import StudyEnv  # noqa: E402

ROUTING, COFLOW, PLACEMENT = (f"iswitch/{name}-v0" for name in ("Routing", "Coflow", "Placement"))
# Small instances: environment, options.
CASES: dict[str, dict[str, Any]] = {
    ROUTING: {"switches": 3, "slots": 20},
    COFLOW: {"jobs": 5, "ports": 6},
    PLACEMENT: {"gpus": 16, "batch": 12, "rate_factor": 3000.0},
}
HOUR = 3600.0


def make(environment: str, **options: Any) -> StudyEnv:
    env = gymnasium.make(environment, **{**CASES[environment], **options}).unwrapped
    assert isinstance(env, StudyEnv)
    return env


def play(env: StudyEnv, draw: int, choose: Callable[[np.ndarray, dict[str, Any]], int]) -> tuple[float, dict[str, Any], list[Any]]:
    """Plays the episode of a draw. Returns the sum of the rewards, the last `info`, and all observations and outcomes."""
    observation, info = env.reset(seed=draw)
    seen, total, is_over = [observation.tobytes()], 0.0, False
    while not is_over:
        assert "results" not in info
        action = choose(observation, info)
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        is_over = terminated or truncated
        seen.append((observation.tobytes(), info["action_mask"].tobytes(), reward, terminated, truncated))
    assert terminated != truncated
    return total, info, seen


def at_random(seed: int) -> Callable[[np.ndarray, dict[str, Any]], int]:
    rng = np.random.default_rng(seed)
    return lambda _, info: int(rng.choice(np.flatnonzero(info["action_mask"])))


@pytest.mark.parametrize("environment", CASES)
def test_gymnasium_finds_no_fault(environment: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(environment, **CASES[environment])
        check_env(env.unwrapped)


@pytest.mark.parametrize("environment", CASES)
def test_stable_baselines_finds_no_fault(environment: str):
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="pip install stable-baselines3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A row for each candidate is the purpose of the environment; MlpPolicy flattens it.
        warnings.filterwarnings("ignore", "Your observation  has an unconventional shape")
        checker.check_env(make(environment))


@pytest.mark.parametrize("environment", CASES)
def test_an_episode_is_determined_by_its_draw_and_actions(environment: str):
    first, second = make(environment), make(environment)
    play(second, 9, at_random(2))
    expected = play(first, 3, at_random(1))
    actual = play(second, 3, at_random(1))
    assert actual[0] == expected[0] and actual[2] == expected[2]
    assert actual[1]["results"] == expected[1]["results"] and actual[1]["draw"] == 3
    assert play(first, 3, at_random(4))[2] != expected[2]
    assert play(first, 4, at_random(1))[2] != expected[2]


@pytest.mark.parametrize("environment", CASES)
def test_draws_after_a_seeded_reset_are_determined_by_the_seed(environment: str):
    first, second = make(environment), make(environment)
    draws = []
    for env in (first, second):
        env.reset(seed=5)
        draws.append([env.reset()[1]["draw"] for _ in range(4)])
    assert draws[0] == draws[1] and len(set(draws[0])) == 4
    observation, info = first.reset(options={"draw": 5})
    assert info["draw"] == 5 and np.array_equal(observation, first.reset(seed=5)[0])


RULES = [
    (ROUTING, rule, {})
    for rule in ("rand", "jsq", "po2", "drill:2:1", "spray", "central-jsq", "central-jsq-exits", "colouring")
]
RULES += [(COFLOW, rule, {}) for rule in ("fifo", "fifo-job", "lcf", "sebf", "job-srpt", "job-sebf", "job-bssi")]
RULES += [(COFLOW, "bssi", {"sharing": "greedy"}), (COFLOW, "sebf", {"rates": "blocking"})]
RULES += [
    (PLACEMENT, rule, {"spread_slowdown": 1.3})
    for rule in ("random", "first-fit", "best-fit", "pack", "spread", "rested", "reliable", "match")
]
RULES += [(PLACEMENT, "longest-reliable", {"order": "longest-first", "objective": "makespan"})]


def cost(environment: str, options: dict[str, Any], results: dict[str, float]) -> float:
    """Returns the sum of the costs that the results imply."""
    if environment == ROUTING:
        beyond = results["delay_slots"] - results["bound_delay_slots"]
        return beyond * CASES[ROUTING]["slots"] * 0.8
    if environment == COFLOW:
        return results["mean_jct_s"]
    return results["makespan_s" if options.get("objective") == "makespan" else "mean_jct_s"] / HOUR


@pytest.mark.parametrize(("environment", "rule", "options"), RULES, ids=[f"{name}-{rule}" for name, rule, _ in RULES])
def test_a_rule_through_the_environment_has_the_figures_of_the_simulator(environment: str, rule: str, options: dict[str, Any]):
    env = make(environment, **options)
    total, info, _ = play(env, 7, lambda *_: env.rule_action(rule))
    assert info["results"] == env.run_rule(rule)
    assert info["results"].get("hits", 1.0) > 0.0, "expected failures that stop jobs"
    assert -total == pytest.approx(cost(environment, options, info["results"]), rel=1e-9, abs=1e-9)


def lowest(env: StudyEnv, *names: str) -> int:
    """Returns the valid row with the lowest values of the details."""
    rows = [(tuple(row[name] for name in names), at) for at, row in enumerate(env.candidates()) if row is not None]
    return min(rows)[1]


def test_sebf_in_python_is_sebf():
    env = make(COFLOW, jobs=8, interarrival_s=5.0)
    _, info, _ = play(env, 2, lambda *_: lowest(env, "bottleneck_left_s", "job", "coflow"))
    assert info["results"] == env.run_rule("sebf") != env.run_rule("fifo")


def test_the_most_reliable_gpus_in_python_are_those_of_the_rule():
    env = make(PLACEMENT)
    _, info, _ = play(env, 2, lambda *_: lowest(env, "failures_per_year", "gpu"))
    assert info["results"] == env.run_rule("reliable") != env.run_rule("random")


def test_a_rule_from_the_observation_is_as_good_as_that_of_the_simulator():
    """The rules differ only in how they break ties."""
    env = make(ROUTING, switches=4, slots=100)
    now, leaves = (env.feature_names.index(name) for name in ("queue_now", "leaves"))
    rng = np.random.default_rng(1)

    def shortest(observation: np.ndarray, info: dict[str, Any]) -> int:
        lengths = np.where(info["action_mask"] == 1, observation[:, now] - observation[:, leaves], np.inf)
        return int(rng.choice(np.flatnonzero(lengths == lengths.min())))

    delays = {name: 0.0 for name in ("own", "central-jsq-exits", "jsq")}
    for draw in range(10):
        delays["own"] += play(env, draw, shortest)[1]["results"]["delay_slots"]
        for rule in ("central-jsq-exits", "jsq"):
            delays[rule] += env.run_rule(rule)["delay_slots"]
    assert delays["own"] == pytest.approx(delays["central-jsq-exits"], rel=0.01)
    assert delays["own"] < 0.97 * delays["jsq"]


def test_iswitch_reports_the_same_figures():
    from policies import program  # skips the test if `iswitch` is missing

    route = Path(program()).with_name("iswitch-route")
    if not route.exists():
        pytest.skip("iswitch-route is missing: cargo build -p iswitch-routing")
    command = [route, "evaluate", "jsq", "--switches", "3", "--load", "0.8", "--slots", "20", "--draw", "7", "--draws", "1", "--json"]
    summary = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    env = make(ROUTING)
    _, info, _ = play(env, 7, lambda *_: env.rule_action("jsq"))
    assert summary["delay"]["mean"] == info["results"]["delay_slots"]
    assert summary["queued"]["mean"] == info["results"]["queued_packets"]


@pytest.mark.parametrize("environment", CASES)
def test_actions_that_are_not_valid_are_replaced_or_refused(environment: str):
    env, strict = make(environment), make(environment, invalid="error")
    rng = np.random.default_rng(1)
    replaced = 0
    _, info = env.reset(seed=1)
    strict.reset(seed=1)
    is_over = False
    while not is_over:
        action = int(rng.integers(len(info["action_mask"])))
        valid = np.flatnonzero(np.roll(info["action_mask"], -action))
        taken = int(action + valid[0]) % len(info["action_mask"])
        if taken != action:
            with pytest.raises(ValueError, match=rf"^action is {action}, expected one of \d+"):
                strict.step(action)
        observation, reward, terminated, truncated, info = env.step(action)
        assert info["invalid_action"] == (taken != action)
        replaced += info["invalid_action"]
        expected = strict.step(taken)
        assert np.array_equal(observation, expected[0]) and (reward, terminated, truncated) == expected[1:4]
        np.testing.assert_array_equal(env.action_masks(), info["action_mask"] == 1)
        is_over = terminated or truncated
    assert replaced >= 4
    for action in (-1, len(info["action_mask"])):
        with pytest.raises(ValueError, match=rf"^action is {action}, expected 0 to {len(info['action_mask']) - 1}$"):
            env.step(action)
    with pytest.raises(ValueError, match="after the end of the episode"):
        env.step(0)


def test_calls_before_the_first_reset_are_refused():
    for environment in CASES:
        env = make(environment)
        for call in (lambda env: env.step(0), lambda env: env.run_rule("fifo"), lambda env: env.rule_action("fifo")):
            with pytest.raises(ValueError, match=r"expected a call between a reset and the end of the episode$"):
                call(env)


INVALID = [
    (ROUTING, {"switches": 1}, "switches is 1, expected at least 2, for a choice of links"),
    (ROUTING, {"stages": 1}, "stages is 1, expected 2 to 16"),
    (ROUTING, {"load": 1.0}, "load is 1, expected a number above 0 and below 1"),
    (ROUTING, {"slots": 0}, "slots is 0, expected at least 1"),
    (ROUTING, {"slots": -1}, "slots is -1, expected at least 0"),
    (ROUTING, {"fill": "all"}, "fill is all, expected random or rule"),
    (ROUTING, {"invalid": "skip"}, "invalid is 'skip', expected 'replace' or 'error'"),
    (COFLOW, {"jobs": 0}, "jobs is 0, expected at least 1"),
    (COFLOW, {"ports": 0}, "ports is 0, expected 1 to 512"),
    (COFLOW, {"interarrival_s": -1.0}, "interarrival is -1, expected a number of seconds >= 0"),
    (COFLOW, {"capacity_gbit": 0.0}, "capacity is 0, expected 0.001 to 1000000 Gbit/s"),
    (COFLOW, {"sharing": "equal"}, "sharing is equal, expected one of madd, greedy, greedy-per-flow"),
    (COFLOW, {"rates": "half"}, "rates is half, expected one of backfill, blocking"),
    (COFLOW, {"candidates": 1}, "candidates is 1, expected 2 to 4096"),
    (PLACEMENT, {"gpus": 1, "widest": 1}, "gpus is 1, expected 2 to 4096"),
    (PLACEMENT, {"gpus": 4}, "number of GPUs of a job is 8, expected 1 to 4"),
    (PLACEMENT, {"batch": 0}, "batch is 0, expected 1 to 100000"),
    (PLACEMENT, {"rate_factor": -1.0}, "failure factor is -1, expected a number"),
    (PLACEMENT, {"checkpoint": "daily"}, "checkpoint is daily, expected none, young-daly or a number"),
    (PLACEMENT, {"checkpoint": 0.0}, "checkpoint interval is 0, expected a number of seconds above 0"),
    (PLACEMENT, {"queueing": "lifo"}, "queueing is lifo, expected one of strict, first-fit, easy"),
    (PLACEMENT, {"order": "random"}, "order is random, expected one of arrival, longest-first"),
    (PLACEMENT, {"objective": "cost"}, "objective is cost, expected one of completion-time, makespan"),
    (PLACEMENT, {"knowledge": "all"}, "knowledge is all, expected one of rates, lives"),
    (PLACEMENT, {"longest_s": 1.0}, "number of jobs is 0, expected at least 1 within the limits"),
    (PLACEMENT, {"horizon_days": 0.0}, "horizon is 0, expected a number of seconds above 0"),
]


@pytest.mark.parametrize(("environment", "options", "message"), INVALID, ids=[f"{name}-{options}" for name, options, _ in INVALID])
def test_errors_name_the_invalid_argument(environment: str, options: dict[str, Any], message: str):
    with pytest.raises(ValueError) as error:
        make(environment, **options)
    assert str(error.value).startswith(message)


def test_files_that_do_not_exist_are_named():
    for environment, name in (
        (ROUTING, "rates_file"),
        (COFLOW, "trace"),
        (COFLOW, "dags"),
        (COFLOW, "job_file"),
        (PLACEMENT, "job_file"),
        (PLACEMENT, "node_faults"),
        (PLACEMENT, "lives"),
    ):
        with pytest.raises(FileNotFoundError, match=f"^{name} is /nowhere, expected the path of an existing file$"):
            gymnasium.make(environment, **{name: "/nowhere"})


def test_arguments_that_contradict_each_other_are_refused(tmp_path: Path):
    rates, jobs = tmp_path / "rates.csv", tmp_path / "jobs.json"
    rates.write_text("0.2,0.4\n0.5,0.1\n")
    jobs.write_text('{"ports": 2, "jobs": [{"arrival_s": 0, "coflows": [{"flows": [[0, 1, 1e9]]}]}]}')
    table = tmp_path / "outages.csv"
    table.write_text("gpu,begin_s,end_s\n1,5,9\n")
    for environment, options, message in (
        (ROUTING, {"rates_file": rates, "load": 0.5}, "load is 0.5, expected None, because rates_file"),
        (ROUTING, {"rates_file": rates, "switches": 3}, "switches is 3, expected 2, as in rates_file"),
        (COFLOW, {"job_file": jobs, "jobs": 3}, "jobs is given, expected None, because job_file contains the jobs"),
        (PLACEMENT, {"cluster_file": table, "gpus": 3}, "gpus is 3, expected None, because cluster_file"),
        (PLACEMENT, {"failures_file": table, "checkpoint": "young-daly"}, "checkpoint is young-daly, expected none or"),
        (PLACEMENT, {"failures_file": table, "gpus_of_draw": 1}, "gpus_of_draw is given, expected None"),
    ):
        with pytest.raises(ValueError) as error:
            gymnasium.make(environment, **options)
        assert str(error.value).startswith(message)


def test_files_determine_the_episode(tmp_path: Path):
    rates, jobs = tmp_path / "rates.csv", tmp_path / "jobs.csv"
    rates.write_text("0.2,0.9\n0.5,0.8\n")
    env = gymnasium.make(ROUTING, rates_file=rates, slots=300).unwrapped
    _, info, _ = play(env, 1, lambda *_: env.rule_action("jsq"))
    assert info["results"]["arrived_packets"] == pytest.approx(2.4 * 300, rel=0.1)
    jobs.write_text("arrival_s,gpus,duration_s\n0,3,7200\n60,1,3600\n")
    env = gymnasium.make(PLACEMENT, job_file=jobs, gpus=8, rate_factor=1e-6).unwrapped
    total, info, _ = play(env, 1, lambda *_: env.rule_action("first-fit"))
    assert info["results"]["mean_jct_s"] == 5400.0 and total == pytest.approx(-1.5)
    trace = tmp_path / "jobs.json"
    # Two coflows of 1 s and 3 s from one port: the shorter first gives completion times of 1 s and 4 s.
    coflows = [{"arrival_s": 0, "coflows": [{"flows": [[0, at, size]]}]} for at, size in ((1, 3.75e8), (2, 1.25e8))]
    trace.write_text(json.dumps({"ports": 3, "jobs": coflows}))
    env = gymnasium.make(COFLOW, job_file=trace).unwrapped
    assert play(env, 1, lambda *_: 1)[0] == pytest.approx(-2.5)
    assert play(env, 1, lambda *_: 0)[0] == pytest.approx(-3.5)
    # If this port is twice as fast, neither coflow waits.
    fabric = tmp_path / "fabric.toml"
    fabric.write_text("ports = 3\n[[port]]\nports = [0]\ngbit = 2\n")
    env = gymnasium.make(COFLOW, job_file=trace, fabric_file=fabric).unwrapped
    assert play(env, 1, lambda *_: 0)[0] == pytest.approx(-2.0)
    with pytest.raises(ValueError, match="ports is 3, expected None, because fabric_file"):
        gymnasium.make(COFLOW, fabric_file=fabric, ports=3)


def test_failure_rates_of_nodes_racks_and_switches_are_given_by_name():
    racks = {"gpus_per_node": 4, "nodes_per_rack": 2, "racks_per_switch": 1}
    rates = {"node_rate": 1.0, "rack_rate": 20.0, "switch_rate": 3.0}
    env = make(PLACEMENT, rate_factor=2.0, **racks, **rates)
    observation, _ = env.reset(seed=1)
    for gpu, values in enumerate(env.candidates()):
        assert values is not None
        assert (values["node"], values["rack"], values["switch"]) == (gpu // 4, gpu // 8, gpu // 8)
        named = [values[f"{level}_failures_per_year"] for level in ("node", "rack", "switch")]
        assert named == pytest.approx([2.0, 40.0, 6.0])
        assert values["failures_per_year"] > sum(named)
        row = dict(zip(env.feature_names, observation[gpu], strict=True))
        assert 0 < row["node_failures"] < row["switch_failures"] < row["rack_failures"]
    for action in range(2):
        observation, *_ = env.step(action)
    with pytest.raises(ValueError, match="rack_rate is -1, expected 0 to"):
        make(PLACEMENT, rack_rate=-1.0)
    with pytest.raises(ValueError, match="domain_repair_s is 0, expected a number of seconds above 0"):
        make(PLACEMENT, node_rate=1.0, domain_repair_s=0.0)


def test_rules_that_the_environment_cannot_express_are_refused():
    for environment, rule, message in (
        (ROUTING, "best", "policy is best, expected one of rand, jsq"),
        (COFLOW, "fair", "rule is fair, expected a rule with the sharing madd, not equal"),
        (COFLOW, "aalo", "rule is aalo, expected a rule that decides only when"),
        (COFLOW, "shafiee-ghaderi", "rule is shafiee-ghaderi, expected a rule that decides only when"),
        (PLACEMENT, "saving", "rule is saving, expected a rule that starts jobs in queue order"),
        (PLACEMENT, "longest-reliable", "rule is longest-reliable, expected a rule with the order arrival"),
    ):
        env = make(environment)
        env.reset(seed=1)
        with pytest.raises(ValueError) as error:
            env.rule_action(rule)
        assert str(error.value).startswith(message)
        if rule != "best":
            assert env.run_rule(rule)


def test_the_code_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]):
    from test_documentation import python_blocks

    (block,) = python_blocks("docs/studies.md")
    exec(block, {})  # noqa: S102
    own, jsq = map(float, capsys.readouterr().out.split())
    assert 1.0 < own < jsq


def test_the_worker_does_not_load_the_studies():
    code = "import sys, iswitch; print(sorted(name for name in sys.modules if 'studies' in name or name == 'gymnasium'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_environment_is_not_copied():
    with pytest.raises(TypeError, match="Simulator"):
        copy.deepcopy(make(ROUTING))
