"""Flower's own programs on this machine: a SuperLink, SuperNodes and `flwr run`. None outlives its test."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower-digits"
PROGRAMS = Path(sys.executable).parent


class Engine:
    """A SuperLink on a free port of this machine, with a home of its own, and what is started with it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {**os.environ, "FLWR_HOME": str(home / "flwr"), "PYTHONUNBUFFERED": "1"}
        # A Ray of its own, and not somebody else's cluster.
        self.environment |= {"RAY_ADDRESS": "local", "RAY_USAGE_STATS_ENABLED": "0"}
        self.environment["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        self._started: list[subprocess.Popen[bytes]] = []

    def start_link(self, *options: str) -> None:
        """Starts the SuperLink and waits until it answers."""
        host, port = self.address.split(":")
        self._start("superlink", "flower-superlink", "--insecure", "--host", host, "--port", port, *options)
        config = self.home / "flwr" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f'[superlink]\ndefault = "test"\n[superlink.test]\naddress = "{self.address}"\ninsecure = true\n'
        )
        wait_until(self._answers, 60, "the SuperLink to answer", self.logs)

    def start_node(self, number: int, nodes: int) -> None:
        """Starts a SuperNode. Its client app finds the process id in a file, in order to kill it."""
        identity = self.home / f"supernode-{number}.pid"
        pairs = {"partition-id": number, "num-partitions": nodes, "pid-file": f"'{identity}'"}
        options = ["--insecure", "--superlink", self.address, "--port", str(free_port())]
        options += ["--node-config", " ".join(f"{key}={value}" for key, value in pairs.items())]
        process = self._start(f"supernode-{number}", "flower-supernode", *options)
        identity.write_text(str(process.pid))

    def run(self, app: Path, *options: str, timeout: float = 240) -> str:
        """`flwr run`, to its end if `--stream` is given; returns what it says."""
        command = [str(PROGRAMS / "flwr"), "run", str(app), "test", *options]
        ended = subprocess.run(
            command,
            env=self.environment,
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout + self.logs()
        return ended.stdout

    def logs(self) -> str:
        return "\n".join(
            f"== {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.home.glob("*.log"))
        )

    def stop(self) -> None:
        """Ends everything: politely, and then for certain."""
        family = {pid for process in self._started for pid in family_of(process.pid)}
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait(5)

    def _start(self, name: str, program: str, *options: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(PROGRAMS / program), *options],
                env=self.environment,
                cwd=self.home,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def engine(home: Path) -> Iterator[Engine]:
    """An engine that is stopped whatever happens."""
    running = Engine(home)
    try:
        yield running
    finally:
        running.stop()


def variant(directory: Path, client: str | None = None, server: str | None = None) -> Path:
    """A copy of the example whose client app or server app is another one."""
    app = directory / "app"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__"))
    settings = (app / "pyproject.toml").read_text()
    for name, code in {"client": client, "server": server}.items():
        if code is not None:
            (app / "flower_digits" / f"other_{name}.py").write_text(code)
            settings = settings.replace(f"flower_digits.{name}_app:app", f"flower_digits.other_{name}:app")
    (app / "pyproject.toml").write_text(settings)
    return app


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(condition: Callable[[], bool], seconds: float, what: str, logs: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}\n{logs()}"
        time.sleep(0.1)


def family_of(ancestor: int) -> set[int]:
    """A process, its descendants, and everything in the session that it leads."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = (int(fields[1]), int(fields[3]))
    family = {ancestor} | {pid for pid, (_, session) in parents.items() if session == ancestor}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    return family
