"""`python -m utils run` under `torch.distributed.run` on two hosts of two ranks, with c10d rendezvous between them."""

import json

import pytest

from tests.cluster.hosts import ROOT, has_own_clocks, run_on_hosts
from tests.cluster.notebooks import SETUP, write_notebook
from tests.cluster.stored import missing_lines, summary
from tests.runtime.namespaces import needs_namespaces

pytestmark = [pytest.mark.cluster, needs_namespaces]

SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
ON_CHOSEN_LINKS = ("08_which_one_when",)  # all its ranks ask for a Cluster, and so run on rank 0's host

MEASURED = """
@dataclass(frozen=True)
class Seen:
    rank: int
    size: int
    node: int
    host: str

S = 2**25
def total(rank):
    dist.barrier()
    dist.all_reduce(torch.ones(S // 4))
    return Seen(dist.get_rank(), dist.get_world_size(), int(os.environ["GROUP_RANK"]), os.uname().nodename)

runs = {n: launch(total, n) for n in (4, 2)}
assert all(isinstance(value, Seen) for run in runs.values() for value in run.values)
print("seen", json.dumps({
    n: {
        "ranks": [[v.rank, v.size, v.node, v.host] for v in run.values],
        "sent": [wire.sent / S for wire in run.wire_bytes],
        "done": [ops[-1].completed_at for ops in run.timeline],
        "seconds": run.seconds,
    }
    for n, run in runs.items()
}))
"""


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_passes_its_checks(solution, tmp_path):
    done = run_on_hosts(solution, tmp_path)
    assert done.codes == (0, 0), done.printed[0][-3000:] + done.errors[0][-3000:]
    cells, passed, checked = summary(done.printed[0], "4 ranks, 2 hosts")
    assert cells and passed == checked > 0
    assert missing_lines(solution, done.printed[0]) == []
    assert done.printed[1] == ""  # rank 0 alone is heard
    if solution.stem not in ON_CHOSEN_LINKS:
        assert min(link.sent for link in done.links) > 100_000  # its ranks did talk across


def test_ranks_live_on_both_hosts_and_their_bytes_cross(tmp_path):
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", SETUP, MEASURED), tmp_path)
    assert done.codes == (0, 0), done.errors[0]
    seen = json.loads(next(line for line in done.printed[0].splitlines() if line.startswith("seen"))[5:])
    nodes = [node for _, _, node, _ in seen["4"]["ranks"]]
    assert nodes == [0, 0, 1, 1]
    assert [(rank, size) for rank, size, _, _ in seen["4"]["ranks"]] == [(rank, 4) for rank in range(4)]
    assert [tuple(each) for each in seen["2"]["ranks"]] == [(r, 2, 0, seen["2"]["ranks"][0][3]) for r in range(2)]
    # The ring's rule: 2(N-1)/N S by each rank's sockets, and by each host's link, for one rank of each sends across.
    assert seen["4"]["sent"] == pytest.approx([1.5] * 4, rel=0.01)
    assert seen["2"]["sent"] == pytest.approx([1.0] * 2, rel=0.01)
    assert [link.sent / 2**25 for link in done.links] == pytest.approx([1.5, 1.5], rel=0.02)


@pytest.mark.skipif(not has_own_clocks(), reason="this system has no time namespaces")
def test_times_of_both_hosts_are_told_by_one_clock(tmp_path):
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", SETUP, MEASURED), tmp_path)
    seen = json.loads(next(line for line in done.printed[0].splitlines() if line.startswith("seen"))[5:])["4"]
    assert [each[3] for each in seen["ranks"]][2:] == ["host1"] * 2  # whose clock is a day ahead
    assert all(0 < at < seen["seconds"] for at in seen["done"])
    assert max(seen["done"]) - min(seen["done"]) < 0.3


FAILING = """
def wrong(rank):
    if rank == 3:
        raise ValueError("three is wrong")
    dist.all_reduce(torch.ones(4))

def hangs(rank):
    if rank < 3:
        dist.all_reduce(torch.ones(4))
    else:
        time.sleep(600)

def stuck(rank):
    if rank < 3:
        dist.all_reduce(torch.ones(4))

def dies(rank):
    if rank == 2:
        os._exit(7)
    dist.all_reduce(torch.ones(4))

launch(size, 4)  # each rank of the job starts a fork server at its first launch, which takes a busy machine long
for fn in (wrong, hangs, stuck, dies):
    start = time.perf_counter()
    try:
        launch(fn, 4, timeout=5)
    except LaunchError as error:
        report = str(error).splitlines()
        print("seen", json.dumps([fn.__name__, type(error).__name__, report, time.perf_counter() - start]))
"""


def test_what_goes_wrong_on_another_host_is_told_and_the_notebook_goes_on(tmp_path):
    cells = (SETUP, FAILING, "print('ranks', launch(size, 4).values)")
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", *cells), tmp_path)
    assert done.codes == (0, 0), done.errors[0]
    told = {
        name: (kind, "\n".join(report), seconds)
        for name, kind, report, seconds in (json.loads(x[5:]) for x in done.printed[0].splitlines() if x[:4] == "seen")
    }
    assert "ranks (4, 4, 4, 4)" in done.printed[0]
    kind, report, seconds = told["wrong"]
    assert kind == "RankFailed" and report.startswith("rank 3 raised ValueError: three is wrong")
    assert "Cell In[2], line 4, in wrong" in report and "ranks 0, 1, 2 wait in all_reduce #1" in report
    assert seconds < 20
    kind, report, seconds = told["hangs"]
    assert kind == "RanksHang" and "the run was not over after 5 s" in report and 5 < seconds < 30
    assert "rank 3 runs at line 11 of hangs" in report
    kind, report, seconds = told["stuck"]
    assert kind == "RanksHang" and "wait for each other for ever, rank 3 having finished" in report
    kind, report, seconds = told["dies"]
    assert kind == "RankDied" and "rank 2 left with exit code 7" in report and seconds < 20


def test_a_cell_that_raises_on_one_rank_ends_the_job_with_its_traceback_from_rank_0(tmp_path):
    cell = "if os.environ['RANK'] == '3':\n    raise KeyError('mine alone')\ntime.sleep(300)"
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", SETUP, cell, "print('never')"), tmp_path, timeout=120)
    assert 0 not in done.codes
    assert "a.ipynb: rank 3 of the job: Cell In[2] raised" in done.errors[0]
    assert "KeyError: 'mine alone'" in done.errors[0] and "never" not in done.printed[0]
    assert "mine alone" not in done.errors[1]


def test_ranks_that_go_different_ways_are_told(tmp_path):
    cell = "launch(size, 2 if os.environ['RANK'] == '2' else 4)"
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", SETUP, cell), tmp_path)
    assert 0 not in done.codes
    assert "rank 0 came to launch(size, 4), rank 2 to launch(size, 2)" in done.errors[0]


CHOSEN = """
run = launch(size, 4, cluster=Cluster(2, 2, "100mbit"))
print("values", run.values, run.link_bytes is not None or run.emulated)
print("more", launch(size, 5).values)
"""


def test_chosen_links_and_more_ranks_than_the_job_has_are_stated_and_run(tmp_path):
    done = run_on_hosts(write_notebook(tmp_path / "a.ipynb", SETUP, CHOSEN), tmp_path)
    assert done.codes == (0, 0), done.errors[0]
    assert "launch: a job's own links have the speed they have." in done.printed[0]
    assert "values (4, 4, 4, 4) " in done.printed[0]
    assert "launch: 5 ranks are more than the 4 of this job" in done.printed[0]
    assert "more (5, 5, 5, 5, 5)" in done.printed[0]
