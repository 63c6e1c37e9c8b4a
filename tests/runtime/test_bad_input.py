"""Every bad argument gets one clear sentence, before anything is started."""

import threading

import pytest
import torch

from utils import launch
from utils.runtime.errors import CannotSend, LaunchError, RankFailed

LOCK = threading.Lock()


def rank_only(rank):
    return rank


@pytest.mark.parametrize(
    ("world_size", "options", "says"),
    [
        (0, {}, "world_size is 0; it must be from 1 to 64 ranks"),
        (-3, {}, "world_size is -3"),
        (1000, {}, "world_size is 1000"),
        ("4", {}, "world_size is '4'; it must be a whole number of ranks"),
        (2.0, {}, "world_size is 2.0"),
        (True, {}, "world_size is True"),
        (None, {}, "world_size is None"),
        (2, {"backend": "mpi"}, "backend is 'mpi'; it can be 'auto', 'gloo', 'nccl'"),
        (2, {"backend": None}, "backend is None"),
        (2, {"timeout": 0}, "timeout is 0; it must be above 0 and at most 604,800 seconds"),
        (2, {"timeout": float("nan")}, "timeout is nan"),
        (2, {"timeout": "30"}, "timeout is '30'; it must be a number of seconds"),
        (2, {"start": "fork"}, "start is 'fork'; it can be 'auto', 'forkserver', 'spawn'"),
    ],
)
def test_arguments_out_of_range(world_size, options, says):
    with pytest.raises((ValueError, TypeError)) as caught:
        launch(rank_only, world_size, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_function():
    with pytest.raises(TypeError, match="pass the function itself"):
        launch(rank_only(0), 2)


def test_more_nccl_ranks_than_gpus():
    gpus = torch.cuda.device_count()
    with pytest.raises(ValueError, match=f"needs one GPU for each of the {gpus + 1} ranks.*use backend='gloo'"):
        launch(rank_only, gpus + 1, backend="nccl")


def test_a_global_that_cannot_travel_is_named():
    with pytest.raises(CannotSend, match=r"uses_lock uses lock, a lock.*Make lock inside uses_lock"):
        lock = threading.Lock()

        def uses_lock(rank):
            return lock.locked()

        launch(uses_lock, 2)


def test_an_argument_that_cannot_travel_is_numbered():
    with pytest.raises(CannotSend, match="argument 2 of the function, a lock"):
        launch(lambda rank, a, b: None, 2, 1, LOCK)


def test_a_result_that_cannot_travel_is_named():
    with pytest.raises(RankFailed, match="the function returned a lock, which cannot be sent back"):
        launch(lambda rank: threading.Lock(), 2)


def test_a_function_with_the_wrong_number_of_arguments():
    def three(rank, a, b):
        pass

    with pytest.raises(RankFailed, match=r"three\(rank, a, b\) cannot be called with the rank and 1 more"):
        launch(three, 2, 1)


def test_a_launch_inside_a_rank():
    with pytest.raises(LaunchError, match="inside a rank"):
        launch(lambda rank: launch(rank_only, 2), 1)
