"""Two "hosts" on one machine: network namespaces joined by a switch, each with a name and a clock of its own.

A job's launcher is started in each of them, as a person would on two machines.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from utils.runtime.kernel_link import KernelLinks, enter
from utils.runtime.leaving import die_with_parent

ROOT = Path(__file__).parents[2]
SPEED = 4e9  # bits per second of each host's link: as fast as two cores of a busy machine have use for
AHEAD = 100_000  # seconds by which the second host's clock is ahead of the first's
PORT = 29400
_ADDRESSES = ("10.77.0.1", "10.77.0.2")


@dataclass(frozen=True)
class Done:
    """What a job gave: exit status and text, by host, and the bytes that passed the hosts' links."""

    codes: tuple
    printed: tuple
    errors: tuple
    links: tuple


def run_on_hosts(notebook, folder, ranks_per_host=2, timeout=1500, environment=None):
    """`python -m utils run` on two hosts; what each printed lies in `folder`, also if the job must be killed."""
    links = KernelLinks(2, SPEED)
    started = []
    try:
        before = links.counters()
        for node, door in enumerate(links.doors):
            with open(folder / f"out.{node}", "w") as out, open(folder / f"err.{node}", "w") as err:
                started.append(
                    subprocess.Popen(
                        [
                            *_own_name_and_clock(node, folder / f"hosts.{node}"),
                            *_launcher(node, ranks_per_host),
                            str(notebook),
                        ],
                        preexec_fn=lambda door=door: (enter(door), die_with_parent()),
                        cwd=ROOT,
                        env=_environment(environment),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                    )
                )
        codes = tuple(each.wait(timeout) for each in started)
        moved = tuple(now - then for now, then in zip(links.counters(), before, strict=True))
    finally:
        for each in started:
            each.kill()  # the launcher is then told to end, and ends its ranks
            each.wait()
        links.close()
    texts = [tuple((folder / f"{name}.{node}").read_text() for node in (0, 1)) for name in ("out", "err")]
    return Done(codes, *texts, moved)


def has_own_clocks():
    """Whether this system lets a host have a clock of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*_own_name_and_clock(1, Path(folder, "hosts")), "true"]
        return subprocess.run(command, capture_output=True).returncode == 0


def _own_name_and_clock(node, hosts):
    """A command in front of another: gives it a name of its own, names for both addresses, and a clock.

    Without the names each connection would wait for a name server that is not there.
    """
    clock = ["--time", "--monotonic", str(AHEAD)] if node else []
    names = "".join(rf"{address} host{k}\n" for k, address in enumerate(_ADDRESSES))
    become = f"""hostname "$0" && printf '127.0.0.1 localhost\\n{names}' > "$1" && mount --bind "$1" /etc/hosts"""
    return [
        *("unshare", "--mount", "--uts", *clock, "--fork", "--kill-child=SIGTERM"),
        *("sh", "-c", f'{become} && shift && exec "$@"', f"host{node}", str(hosts)),
    ]


def _launcher(node, ranks_per_host):
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={ranks_per_host}"),
        *("--rdzv-backend=c10d", f"--rdzv-endpoint={_ADDRESSES[0]}:{PORT}", f"--rdzv-conf=is_host={int(node == 0)}"),
        *(f"--local-addr={_ADDRESSES[node]}", "-m", "utils", "run"),
    ]


def _environment(more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "UTILS_", "GLOO_"))}
    return kept | {"OMP_NUM_THREADS": "1"} | (more or {})
