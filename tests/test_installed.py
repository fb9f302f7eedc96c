"""The wheel in an empty environment, far from the repository: `make wheel`, which installs everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNREACHABLE = ("Temporary failure in name resolution", "Network is unreachable", "Max retries exceeded")


def run(*command: str | Path, cwd: Path, minutes: float = 15) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DISCREET"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * minutes,
    )


@pytest.mark.slow
@pytest.mark.skipif("DISCREET_WHEEL" not in os.environ, reason="installs every dependency anew: make wheel")
def test_the_wheel_alone_runs_the_demo(tmp_path: Path) -> None:
    built = run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir",
        tmp_path, ROOT, cwd=tmp_path,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    home, place = tmp_path / "env", tmp_path / "elsewhere"
    place.mkdir()
    assert run(sys.executable, "-m", "venv", home, cwd=tmp_path).returncode == 0
    installed = run(home / "bin/python", "-m", "pip", "install", "--quiet", "--no-input", wheel, cwd=place)
    if installed.returncode and any(said in installed.stderr for said in UNREACHABLE):
        pytest.skip("the package registry cannot be reached from here")
    assert installed.returncode == 0, installed.stderr

    where = run(home / "bin/python", "-c", "import discreet; print(discreet.__file__)", cwd=place)
    assert where.stdout.startswith(str(home)), where
    demo = run(home / "bin/discreet", "demo", cwd=place)
    assert demo.returncode == 0, demo.stderr
    print(demo.stdout)
    (page,) = place.rglob("report.html")
    assert page.stat().st_size > 10_000
