"""A private PostgreSQL for tests: no network, no password, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


class Cluster:
    """A running server that listens on a socket in a temporary folder."""

    def __init__(self, programs: Path, home: Path, user: str | None) -> None:
        self.programs, self.home, self.user = programs, home, user

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            user=self.user,
            cwd=self.home,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.home} -c max_connections=60"
        self.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")

    def stop(self, *, mode: str = "fast") -> None:
        """`mode="immediate"` is a crash: nothing is written any more."""
        self.run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def database(self) -> str:
        """The URL of a new, empty schema."""
        name, url = f"s{uuid.uuid4().hex}", f"postgresql://owner@/postgres?host={self.home}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")  # pyright: ignore[reportCallIssue, reportArgumentType]
        return f"{url}&options=-csearch_path%3D{name}"


def programs() -> Path | None:
    """Where initdb is, if it is installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return debian[-1].parent if debian else None


def absent() -> str | None:
    """Why there can be no cluster here, if so."""
    if programs() is None:
        return "PostgreSQL is not installed here: no initdb found"
    if os.getuid() == 0 and not _unprivileged():
        return "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    return None


def _unprivileged() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Make a cluster, run it, remove it."""
    where = programs()
    assert where is not None
    user = _unprivileged() if os.getuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="pg"))  # short: a socket's path has at most 107 characters
    try:
        if user is not None:
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)
        home.chmod(0o711)
        server = Cluster(where, home, user)
        server.run("initdb", "-D", "data", "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server.stop(mode="immediate")
    finally:
        shutil.rmtree(home, ignore_errors=True)
