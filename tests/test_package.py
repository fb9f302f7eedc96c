"""The package as a whole: version, lazy names, what importing it does not do, locks, wheel."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import discreet as dc

ROOT = Path(__file__).parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def run_python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def requirements(lock: Path) -> dict[str, str]:
    """Each locked requirement with everything that belongs to it: markers and hashes."""
    entries = re.findall(
        r"^([A-Za-z0-9._-]+==[^\s;]+)(.*(?:\n[ \t]+--hash=.*)*)", lock.read_text(), re.MULTILINE
    )
    return dict(entries)


def test_version_is_the_one_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert dc.__version__ == project["version"]
    assert f"version: {dc.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_public_name_resolves_and_is_listed() -> None:
    for name in dc.__all__:
        assert getattr(dc, name) is not None
        assert name in dir(dc)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Bugdet'; it has Budget, "):
        dc.Bugdet  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018


def test_importing_loads_neither_jax_nor_any_room() -> None:
    loaded = run_python(
        "import discreet, sys;"
        "print([m for m in sys.modules if m.startswith(('jax', 'numpyro', 'discreet.'))])"
    )
    assert loaded == "[]"


def test_using_privacy_loads_no_jax() -> None:
    loaded = run_python(
        "import discreet as dc, sys; dc.privacy; dc.Budget;"
        "print({'jax', 'jaxlib', 'numpyro', 'optax', 'blackjax'} & set(sys.modules))"
    )
    assert loaded == "set()"


@pytest.mark.parametrize("used", ["discreet", "discreet.privacy"])
def test_importing_changes_nothing_global(used: str) -> None:
    # NumPy and SciPy filter their own warnings, and libraries add null handlers: not ours to judge.
    changed = run_python(
        f"""
import logging, os, warnings
def state():
    loggers = [logging.root, *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    null = logging.NullHandler
    handlers = [(log.name, h) for log in loggers for h in log.handlers if not isinstance(h, null)]
    filters = list(warnings.filters) if {used == "discreet"} else []
    return dict(os.environ), logging.root.level, handlers, filters
before = state()
import {used}
discreet.__version__, dir(discreet)
print(before != state())
"""
    )
    assert changed == "False"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks_are_hashed_and_name_no_host(lock: Path) -> None:
    text = lock.read_text()
    assert not re.search(r"https?:|://|index-url|find-links| @ ", text, re.IGNORECASE)
    entries = requirements(lock)
    assert len(entries) == len(re.findall(r"^[^\s#]", text, re.MULTILINE)), "a line is no pinned requirement"
    assert [name for name, rest in entries.items() if "--hash=sha256:" not in rest] == []


def test_the_development_lock_contains_the_runtime_lock() -> None:
    runtime, development = (requirements(ROOT / "requirements" / name) for name in ("runtime.txt", "dev.txt"))
    assert runtime.keys() <= development.keys()
    assert {"hatchling", "editables"} <= {pin.partition("==")[0] for pin in runtime}


def test_the_wheel_is_complete(tmp_path: Path) -> None:
    command = [
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run([sys.executable, "-m", *command], check=True, stdin=subprocess.DEVNULL)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"discreet-{dc.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        assert "discreet = discreet.cli:app" in archive.read(metadata).decode()
    source = ROOT / "src"
    expected = {str(f.relative_to(source)) for f in source.rglob("*") if f.suffix in {".py", ".typed"}}
    assert "discreet/py.typed" in shipped
    assert expected <= shipped
