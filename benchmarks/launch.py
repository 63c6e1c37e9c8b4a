"""Fresh ranks from a warm notebook kernel, against torch.multiprocessing.spawn, in turns.

Every call starts N ranks, makes a gloo group, does one all-reduce of one number and comes back. The timing runs inside
a real kernel, since that is where a learner waits. `--rounds` sets how often; the first call of a kernel is timed in
three further kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile

from benchmarks.figures import Figure, in_turns, seconds, spread

RANKS = (1, 2, 4, 8)
ALL_REDUCE = """
import torch, torch.distributed as dist
from benchmarks.launch import by_launch, by_spawn, measure
from utils import launch
def all_reduce(rank):
    x = torch.ones(1)
    dist.all_reduce(x)
    return x.item()
"""


def spawned(rank: int, ranks: int, meeting: str) -> None:
    """What a program without this suite does in each rank."""
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def by_spawn(ranks: int) -> None:
    """The usual way: spawn, meet by a file, all-reduce, leave."""
    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(spawned, (ranks, f"{folder}/store"), nprocs=ranks)


def by_launch(all_reduce: object, ranks: int) -> None:
    """Ours, with a function defined in a cell."""
    from utils import launch

    assert launch(all_reduce, ranks).values == (float(ranks),) * ranks


def measure(all_reduce: object, rounds: int) -> str:
    """Times by ranks and way, in seconds, as JSON. Runs in the kernel."""
    by_launch(all_reduce, 2)
    result = {}
    for ranks in RANKS:
        ours = {"launch": lambda n=ranks: by_launch(all_reduce, n)}
        times = in_turns(ours | {"spawn": lambda n=ranks: by_spawn(n)}, rounds)
        more = in_turns(ours, 6 * rounds)  # spawn takes seconds; ours is cheap enough for many more
        result[ranks] = {"spawn": times["spawn"], "launch": times["launch"], "launch again": more["launch"]}
    return json.dumps(result)


def in_kernel(*cells: str) -> tuple[str, list[float]]:
    """Run cells in a new kernel: the last value, and each cell's seconds."""
    from jupyter_client.manager import start_new_kernel  # here, because spawned ranks import this file too

    manager, client = start_new_kernel(kernel_name="python3")
    texts, times = [], []

    def keep(message: dict) -> None:
        if message["msg_type"] in ("execute_result", "error"):
            data = message["content"].get("data", {})
            texts.append(data.get("text/plain", str(message["content"].get("evalue"))))

    try:
        for cell in cells:
            times.append(seconds(lambda cell=cell: client.execute_interactive(cell, timeout=1800, output_hook=keep)))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return texts[-1] if texts else "", times


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rounds", type=int, default=5, help="spawn and launch in turns, this often")
    rounds = arguments.parse_args().rounds
    firsts = [in_kernel(ALL_REDUCE, "launch(all_reduce, 4).values")[1][1] for _ in range(3)]
    text, _ = in_kernel(ALL_REDUCE, f"measure(all_reduce, {rounds})")
    times = json.loads(text.strip("'"))
    print(f"{'ranks':>5} {'launch, s':>10} {'spawn, s':>10} {'ratio':>7} {'launch against launch':>22}")
    for ranks in map(str, RANKS):
        launch, spawn = (statistics.median(times[ranks][way]) for way in ("launch", "spawn"))
        again = spread(times[ranks]["launch again"])
        print(f"{ranks:>5} {launch:>10.3f} {spawn:>10.3f} {spawn / launch:>7.1f} {again:>22.2f}")
    ours = [*times["4"]["launch"], *times["4"]["launch again"]]
    four, ratio = statistics.median(ours), statistics.median(times["4"]["spawn"]) / statistics.median(ours)
    Figure("4 fresh ranks, one all-reduce, s (median)", four, "<= 0.25", spread(ours), four <= 0.25).print()
    Figure("spawn over launch, 4 ranks", ratio, ">= 15", spread(ours), ratio >= 15).print()
    first = statistics.median(firsts)
    Figure("first call of a kernel, s (median)", first, "<= 6", max(firsts) / min(firsts), first <= 6).print()


if __name__ == "__main__":
    sys.exit(main())
