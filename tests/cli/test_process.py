"""What only a fresh process shows: start-up, pipes, terminals; `compare`."""

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app

GAUSSIAN = [
    "account",
    "gaussian",
    "--sigma",
    "4",
    "--neighbours",
    "substitute",
    "--delta",
    "1e-6",
    "--compare",
]
HEAVY = "{'jax', 'jaxlib', 'numpyro', 'numpy', 'scipy', 'matplotlib', 'dp_accounting'}"


def fresh(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run discreet in a new process, piped."""
    code = "import sys; sys.argv[0] = 'discreet'; from discreet.cli import app; app()"
    plain = {key: value for key, value in os.environ.items() if key not in {"FORCE_COLOR", "TTY_COMPATIBLE"}}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=plain | environment,
    )


def loaded_by(arguments: list[str], names: str) -> str:
    code = (
        "import sys; from typer.testing import CliRunner; from discreet.cli import app;"
        f"assert CliRunner().invoke(app, {arguments!r}).exit_code == 0;"
        f"print(sorted({names} & set(sys.modules)))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by(["--help"], HEAVY) == "[]\n"
    assert loaded_by(["account", "barker", "--help"], HEAVY) == "[]\n"


def test_an_answer_loads_no_jax() -> None:
    assert loaded_by(GAUSSIAN, "{'jax', 'jaxlib', 'numpyro', 'matplotlib'}") == "[]\n"


def test_version() -> None:
    assert fresh("--version").stdout == f"discreet {discreet.__version__}\n"


def test_a_pipe_gets_plain_text_without_wrapping() -> None:
    done = fresh(*GAUSSIAN, COLUMNS="40")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.isascii()
    assert max(map(len, done.stdout.splitlines())) > 100
    assert done.stdout.splitlines()[0] == "gaussian: sigma 4, sensitivity 1"


def test_a_terminal_gets_colours_and_no_line_beyond_its_width() -> None:
    done = fresh(*GAUSSIAN, COLUMNS="80", FORCE_COLOR="1")
    assert "\x1b[1m" in done.stdout
    import re

    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    assert max(map(len, lines)) <= 80


def test_a_mistake_in_a_fresh_process() -> None:
    done = fresh("account", "gaussian", "--sigma", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.fixture(scope="module")
def compared() -> tuple[dict[str, dict[str, float]], float]:
    started = time.perf_counter()
    result = CliRunner().invoke(app, ["compare", "--json"])
    assert result.exit_code == 0, result.output
    plans = json.loads(result.stdout)["plans"]
    return {f"{plan['plan']} ({plan['neighbours']})": plan for plan in plans}, time.perf_counter() - started


def test_compare_solves_every_plan_better_than_published_and_in_time(compared) -> None:
    plans, seconds = compared
    assert len(plans) >= 11
    assert all(plan["gain"] >= 1 for plan in plans.values())
    assert seconds < 20


def test_compare_agrees_with_account(compared) -> None:
    plans, _ = compared
    chain = plans["Barker MCMC, batch 1,000 of 1e5 (substitute)"]
    draws = plans["Posterior draws of range 0.1 (substitute)"]
    from discreet.privacy import barker, bounded_range

    steps = int(chain["exact"])
    assert barker(1000, 100_000, steps).epsilon(1e-6) <= 1 < barker(1000, 100_000, steps + 2).epsilon(1e-6)
    assert barker(1000, 100_000, int(chain["published"]), bound="as_published").epsilon(1e-6) <= 1
    one = bounded_range(0.1, neighbours="substitute")
    assert (
        one.repeat(int(draws["exact"])).epsilon(1e-6) <= 1 < one.repeat(int(draws["exact"]) + 1).epsilon(1e-6)
    )
    assert draws["published"] == 10
