"""`discreet account`: reference values, the inverse, comparisons, JSON, files, examples."""

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.privacy import Guarantee, attacker_success, barker, beta_bernoulli

SGD = "poisson-gaussian --rate 256/60000 --sigma 1.3 --steps 3515 --delta 1e-5"
CHAIN = "barker --batch 1000 --size 1e5 --steps 5000 --delta 1e-5"
BETA = "beta-bernoulli --successes 6 --failures 12 --size 100"
KEYS = {
    "mechanism", "parameters", "neighbours", "repeat", "group",
    "results", "compare", "assumes", "guess", "guarantee",
}  # fmt: skip


def run(command: str, *more: str, width: int = 200) -> str:
    """What `discreet account COMMAND` prints."""
    arguments = ["account", *shlex.split(command), *more]
    result = CliRunner().invoke(app, arguments, prog_name="discreet", env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(command: str, *more: str) -> dict[str, Any]:
    """What it prints as JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(run(command, "--json", *more), parse_constant=refuse)


def subcommands() -> list[str]:
    # The first column of the list of commands.
    return re.findall(r"^│ ([a-z]+(?:-[a-z]+)*) ", run("", "--help"), re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    monkeypatch.chdir(tmp_path)
    Path("curve.csv").write_text("order,divergence\n1.5,0.05\n2,0.1\n4,0.25\n16,inf\n")
    Path("profile.csv").write_text("epsilon,delta\n0,0.1\n0.5,1e-3\n1,1e-5\n")
    run("pure 0.5 --neighbours substitute --save first.json")
    run(BETA, "--save", "second.json")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (f"{SGD} --neighbours add-remove", 0.864),
        (f"{SGD} --neighbours substitute", 1.555),
        (CHAIN, 0.14995),
        ("barker --batch 1000 --size 1e6 --steps 5000 --delta 1e-6", 0.01491),
        (f"{BETA} --delta 1e-3", 1.353),
        (f"{BETA} --delta 1e-5", 2.236),
        (f"{BETA} --delta 1e-6", 2.648),
        ("pure 1/8 --repeat 8 --neighbours substitute --delta 0", 1.0),
    ],
)
def test_reference_values(command: str, expected: float) -> None:
    (result,) = answer(command)["results"]
    assert result["epsilon"] == pytest.approx(expected, abs=5.1e-4 if expected > 0.5 else 5e-5)
    assert result["reason"] is None


def test_the_printed_epsilon_is_never_below_the_computed_one() -> None:
    exact = answer(f"{BETA} --delta 1e-5")["results"][0]["epsilon"]
    printed = float(re.findall(r"1e-5 +([\d.]+)", run(f"{BETA} --delta 1e-5"))[0])
    assert exact <= printed <= exact * 1.001


@pytest.mark.parametrize(
    "command", [f"{CHAIN}", f"{SGD} --neighbours add-remove", f"{BETA} --delta 1e-6 --repeat 2"]
)
def test_the_inverse_gives_no_more_than_the_delta_asked(command: str) -> None:
    (asked,) = answer(command)["results"]
    without = re.sub(r" --delta \S+", "", command)
    (found,) = answer(without, "--epsilon", repr(asked["epsilon"]))["results"]
    assert found["epsilon"] == asked["epsilon"]
    assert 0 < found["delta"] <= asked["delta"] * (1 + 1e-9)


def rows(command: str) -> dict[str, dict[str, Any]]:
    return {row["bound"]: row for row in answer(command, "--compare")["compare"]}


def test_compare_barker() -> None:
    printed, classical, improved, exact = rows(CHAIN).values()
    assert (printed["kind"], exact["kind"]) == ("as printed", "guarantee")
    found = [row["epsilon"] for row in (printed, classical, improved, exact)]
    assert found == pytest.approx([4.94, 1.222, 0.9565, 0.14995], rel=1e-3)
    assert [row["times"] for row in (printed, exact)] == pytest.approx([32.95, 1], rel=1e-3)


def test_compare_poisson_gaussian_shows_the_other_neighbours_and_the_approximation() -> None:
    table = rows(f"{SGD} --neighbours add-remove")
    limit = table["Gaussian central limit (paper N)"]
    assert limit["epsilon"] == pytest.approx(0.834, abs=5e-4)
    assert "not a guarantee" in limit["kind"]
    assert table["Renyi sum, improved conversion"]["epsilon"] == pytest.approx(0.954, abs=1e-3)
    assert table["exact, neighbours substitute"]["epsilon"] == pytest.approx(1.555, abs=1e-3)
    back = rows(f"{SGD} --neighbours substitute")["exact, neighbours add-remove"]
    assert back["epsilon"] == pytest.approx(0.864, abs=1e-3)


def test_compare_beta() -> None:
    found = [row["epsilon"] for row in rows(f"{BETA} --delta 1e-5").values()]
    assert found == pytest.approx([3.138, 2.615, 2.236], abs=1e-3)


def test_compare_bounded_range() -> None:
    command = "bounded-range 0.5 --repeat 20 --neighbours substitute --delta 1e-6"
    added, composed, zcdp, best = (row["epsilon"] for row in rows(command).values())
    assert added == pytest.approx(10)
    assert added >= composed > zcdp > best


def test_compare_strongly_convex_solves_minamis_weight_for_epsilon() -> None:
    command = "strongly-convex-posterior --lipschitz {} --convexity 4 --neighbours substitute --delta 1e-5"
    minami, *_, exact = rows(command.format(0.4)).values()
    # w = eps / (2 L) sqrt(m / (1 + 2 log(1/delta))), with G = 2 L w.
    weight = minami["epsilon"] * math.sqrt(4 / (1 + 2 * math.log(1e5)))
    assert weight == pytest.approx(0.4)
    assert minami["times"] > 1.3
    assert exact["times"] == 1
    assert "too low" in next(iter(rows(command.format(6)).values()))["kind"]


@pytest.mark.parametrize("name", ["gaussian --sigma 3", "laplace --scale 3"])
def test_compare_is_sorted_out_by_renyi_and_exact(name: str) -> None:
    table = rows(f"{name} --neighbours substitute --delta 1e-5")
    assert list(table)[-1] == "exact"
    assert all(row["times"] >= 1 for row in table.values())


def test_json_has_the_documented_keys_and_its_guarantee_reads_back() -> None:
    found = answer(f"{CHAIN} --group 2 --repeat 3 --compare".replace("5000", "5"))
    assert set(found) == KEYS
    assert found["parameters"] == {
        "batch": 1000, "size": 100_000, "steps": 5, "variance": 2.0, "clip": 1.0,
    }  # fmt: skip
    assert (found["neighbours"], found["repeat"], found["group"]) == ("substitute", 3, 2)
    assert Guarantee.from_dict(found["guarantee"]) == barker(1000, 100_000, 15).for_group(2)
    assert set(found["results"][0]) == {"delta", "epsilon", "route", "reason", "guess"}
    assert set(found["compare"][0]) == {"delta", "bound", "kind", "epsilon", "times", "guess"}
    assert "as published (paper M, Theorem 2)" not in {row["bound"] for row in found["compare"]}
    page = (Path(__file__).parents[2] / "docs/how-to/account.md").read_text()
    assert {key for key in KEYS if f"`{key}`" not in page} == set()


def test_no_epsilon_is_null_in_json_and_none_with_a_reason_in_text() -> None:
    command = "gaussian --sigma 1 --neighbours substitute --delta 0"
    (result,) = answer(command)["results"]
    assert result["epsilon"] is None
    assert "no largest value" in result["reason"]
    text = run(command)
    assert re.search(r"^ +0 +none", text, re.MULTILINE)
    assert "No epsilon: at delta 0: its privacy loss has no largest value" in text


def test_without_delta_or_epsilon_a_few_deltas_are_shown() -> None:
    deltas = [result["delta"] for result in answer("laplace --scale 2 --neighbours substitute")["results"]]
    assert deltas == [0, 1e-4, 1e-5, 1e-6, 1e-8]
    deltas = [result["delta"] for result in answer(BETA)["results"]]
    assert deltas == [1e-4, 1e-5, 1e-6, 1e-8]


def test_the_sentences_say_against_whom_and_on_what_it_rests() -> None:
    text = run(f"{SGD} --neighbours add-remove".replace("3515", "1"), "--group", "2")
    assert "Protects: neighbours are add-remove: one person's record added or removed" in text
    assert "here for 2 such people together" in text
    assert "Rests on: every step draws a fresh Poisson sample" in text
    assert "two tables that differ in 2 people" in text


def test_the_chance_of_a_guess_is_the_one_of_randomised_response() -> None:
    for epsilon in (0.0, 0.3, 1.0, 5.0):
        assert attacker_success(epsilon, 0.0) == pytest.approx(1 / (1 + math.exp(-epsilon)))
    assert attacker_success(0.0, 0.2) == pytest.approx(0.6)  # (1 + TV) / 2
    assert attacker_success(math.inf, 0.0) == attacker_success(1000.0, 0.5) == 1.0
    found = answer(f"pure {math.log(3)!r} --neighbours substitute --delta 0")["guess"]
    assert found == pytest.approx(0.75)


def test_the_chance_of_a_guess_is_the_total_variation_distance_of_the_guarantee() -> None:
    expected = 0.5 + 0.5 * beta_bernoulli(6, 12, 100).delta(0.0)
    assert answer(f"{BETA} --delta 1e-6")["guess"] == pytest.approx(expected)


@pytest.mark.usefixtures("files")
def test_compose_adds_saved_guarantees_and_json_output() -> None:
    Path("third.json").write_text(run("pure 0.25 --neighbours substitute --json"))
    found = answer("compose first.json second.json third.json first.json --delta 1e-6 --compare")
    total = Guarantee.from_dict(found["guarantee"])
    parts = [Guarantee.from_json(Path(name).read_text()) for name in ("first.json", "second.json")]
    expected = parts[0] + parts[0] + parts[1]
    assert found["results"][0]["epsilon"] > expected.epsilon(1e-6)
    assert sum(count for _, count in total.pieces) == 4
    assert len(found["compare"]) >= 2
    assert min(row["epsilon"] for row in found["compare"]) == found["results"][0]["epsilon"]


@pytest.mark.usefixtures("files")
def test_tables_as_json_and_csv_say_the_same() -> None:
    Path("curve.json").write_text('{"1.5": 0.05, "2": 0.1, "4": 0.25}')
    Path("pairs.json").write_text("[[1.5, 0.05], [2, 0.1], [4, 0.25]]")
    found = [
        answer(f"renyi {name} --neighbours substitute --delta 1e-6")["results"]
        for name in ("curve.csv", "curve.json", "pairs.json")
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("files")
def test_the_example_of_every_subcommand_runs() -> None:
    names = subcommands()
    assert len(names) == 17
    for name in names:
        page = run(name, "--help", width=300)
        (example,) = re.findall(r"Example: discreet account (.+?) *$", page, re.MULTILINE)
        assert example.startswith(name), example
        assert "Protects: neighbours are" in run(example)
