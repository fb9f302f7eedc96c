"""Every mistake is one line on stderr and exit code 2, and names what to change."""

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app

ANY = "--neighbours substitute"
MISTAKES = [
    ("release study.toml --yes --seed -1", "--seed must be a whole number from 0"),
    ("release nothere.toml --yes", "there is no file nothere.toml; check the path"),
    ("plan .", ". must be a TOML file, got no ending"),
    ("account gaussian --sigma 1", "--neighbours is missing: give substitute"),
    ("account gaussian --sigma 1 --neighbours both", "--neighbours must be substitute or add-remove"),
    ("account barker --batch 9 --size 99 --steps 1 --neighbours substitute", "--neighbours is not a"),
    (f"account gaussian {ANY}", "--sigma is missing"),
    (f"account gaussian --sigma {ANY}", "got '--neighbours'"),
    ("account gaussian --sigma", "--sigma needs a value"),
    (f"account gaussian --sigma -1 {ANY}", "--sigma must be a finite number above 0, got -1"),
    (f"account gaussian --sigma abc {ANY}", "--sigma must be a finite number such as 0.5"),
    (f"account gaussian --sigma nan {ANY}", "--sigma must be a finite number such as 0.5"),
    (f"account gaussian --sigma inf {ANY}", "--sigma must be a finite number"),
    (f"account gaussian --sigma 1e999 {ANY}", "--sigma must be a finite number"),
    (f"account gaussian --sigma 1/0 {ANY}", "--sigma must not divide by zero"),
    (f"account gaussian --sigma __import__ {ANY}", "--sigma must be a finite number"),
    (f"account gaussian --sigma 1 --delta 1 {ANY}", "--delta must be at least 0 and below 1, got 1"),
    (f"account gaussian --sigma 1 --delta -1e-6 {ANY}", "--delta must be at least 0"),
    (f"account gaussian --sigma 1 --epsilon -1 {ANY}", "--epsilon must be at least 0"),
    (f"account gaussian --sigma 1 --delta 1e-6 --epsilon 1 {ANY}", "--delta and --epsilon were both given"),
    (f"account gaussian --sigma 1 --repeat 0 {ANY}", "--repeat must be a whole number at least 1, got 0"),
    (f"account gaussian --sigma 1 --repeat 1.5 {ANY}", "--repeat must be a whole number"),
    (f"account gaussian --sigma 1 --group 0 {ANY}", "--group must be a whole number at least 1, got 0"),
    (f"account gaussian --sigma 1 --save no/such/g.json {ANY}", "--save cannot write no/such/g.json"),
    (f"account gaussian --sigma 1 --sigm 2 {ANY}", "no option --sigm; did you mean"),
    (f"account pure {ANY}", "LOSS is missing"),
    (f"account pure nan {ANY}", "LOSS must be a finite number"),
    (f"account pure 1 2 {ANY}", "unexpected extra argument"),
    (f"account pure {ANY} -- -1", "LOSS must be a finite number at least 0"),
    (f"account approximate 1 2 {ANY}", "SLACK must be a finite number"),
    (f"account poisson-gaussian --rate 2 --sigma 1 {ANY}", "--rate must be a finite number above 0 and"),
    ("account barker --batch 200 --size 100 --steps 1", "--batch must be a whole number"),
    ("account barker --batch 20 --size 100 --steps 1 --clip 3", "--clip must have a square below variance"),
    ("account barker --batch 20 --size 100 --steps x", "--steps must be a whole number"),
    ("account barker --batch 20 --size 100 --steps 1 --tempered-size 200", "--tempered-size must be"),
    ("account without-replacement --rate 1/10", "exactly one of --gaussian, --laplace and --pure"),
    ("account without-replacement --rate 1/10 --pure 1 --laplace 1", "exactly one of"),
    ("account without-replacement --rate 1/10 --laplace 0", "--laplace must be a finite number above 0"),
    ("account beta-bernoulli --successes 6 --failures 12 --size 10 --weight 2", "--weight must be"),
    ("account dirichlet-categorical --concentration 1,x", "--concentration must be a finite number"),
    ("account dirichlet-categorical --concentration 1", "--concentration must have 2 categories"),
    ("account renyi nowhere.csv --neighbours substitute", "nowhere.csv cannot be read: no such file"),
    ("account renyi nan.csv --neighbours substitute", "nan.csv must hold numbers, line 2"),
    ("account renyi words.csv --neighbours substitute", "words.csv must hold two columns order,divergence"),
    ("account renyi twice.csv --neighbours substitute", "line 2 repeats 2"),
    ("account renyi empty.csv --neighbours substitute", "it has no rows"),
    ("account renyi broken.json --neighbours substitute", "broken.json must be JSON"),
    ("account renyi shape.json --neighbours substitute", "JSON of another shape"),
    ("account renyi binary.csv --neighbours substitute", "not UTF-8"),
    ("account renyi . --neighbours substitute", "cannot be read"),
    ("account profile nan.csv --neighbours substitute", "nan.csv must hold numbers"),
    ("account profile words.csv", "--neighbours is missing"),
    ("account compose", "FILE... is missing"),
    ("account compose shape.json", "must be a guarantee written by"),
    ("account compose negative.json", "mu must be a finite number at least 0, got -1"),
    ("account compose mixed.json", "a guarantee for substitute neighbours has a piece for add_remove"),
    ("account compose kind.json", "must be a guarantee"),
    ("account compose one.json other.json", "must share one neighbour relation"),
    ("account gausian --sigma 1", "no command 'gausian'; did you mean gaussian?"),
    ("account poisson_gaussian", "did you mean poisson-gaussian?"),
    ("account xyzzy", "the commands are pure"),
    ("acount", "did you mean account?"),
    ("compare --epsilon 0", "--epsilon must be above 0"),
    ("compare --delta 1", "--delta must be above 0 and below 1"),
    ("--nonsense", "no option --nonsense"),
]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    piece = '{"kind": "%s", "neighbours": "%s", "mu": %s}'
    guarantee = '{"format": 1, "neighbours": "%s", "inexactness": 0.0, "pieces": [{"count": 1, "piece": %s}]}'
    for name, kind, relation, mu in [
        ("one", "Gaussian", "substitute", "1"),
        ("other", "Gaussian", "add_remove", "1"),
        ("negative", "Gaussian", "substitute", "-1"),
        ("mixed", "Gaussian", "substitute", '1, "neighbours": "add_remove"'),
        ("kind", "Unheard", "substitute", "1"),
    ]:
        Path(f"{name}.json").write_text(guarantee % (relation, piece % (kind, relation, mu)))
    Path("nan.csv").write_text("1.5,0.1\n2,nan\n")
    Path("words.csv").write_text("order,divergence\na,b\n")
    Path("twice.csv").write_text("2,0.1\n2,0.2\n")
    Path("empty.csv").write_text("order,divergence\n")
    Path("broken.json").write_text("{")
    Path("shape.json").write_text("[1, 2, 3]")
    Path("binary.csv").write_bytes(b"\xff\xfe\x00\x81")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("command", "expected"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_is_one_line_with_exit_code_2(command: str, expected: str) -> None:
    result = CliRunner().invoke(app, shlex.split(command), prog_name="discreet")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert expected in result.stderr
    assert result.stderr.startswith("discreet")
    assert not any(word in result.stderr for word in ("Traceback", "Value error", "np.float64"))
