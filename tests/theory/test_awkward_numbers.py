"""NumPy's numbers do not overflow, and numbers that mean nothing are refused in one sentence."""

import numpy as np
import pytest

from utils.theory.memory import max_parameters, model_states
from utils.theory.models import Llama
from utils.theory.recipes import Recipe
from utils.theory.scaling import strong_scaling
from utils.theory.traffic import collective_bytes, gloo_bytes, traffic_by_rank
from utils.theory.units import format_bytes


def test_small_integers_of_numpy_do_not_overflow():
    assert collective_bytes("all_reduce", np.int32(2**30), np.int32(4)) == 1.5 * 2**30
    assert gloo_bytes("reduce", np.int32(2**31 - 1), 4, 1) == gloo_bytes("reduce", 2**31 - 1, 4, 1)
    narrow = [gloo_bytes("broadcast", 2**20, np.uint8(4), np.uint8(r), np.uint8(2)) for r in range(4)]
    assert narrow == [gloo_bytes("broadcast", 2**20, 4, r, 2) for r in range(4)]
    assert traffic_by_rank("send", 8, np.uint8(200), np.uint8(199))[0].received == 8
    assert model_states(np.int32(2**30), 8, "ddp").total == 16 * 2**30
    assert max_parameters(np.float32(80e9), 1, "ddp") == 5 * 10**9


def test_sizes_are_written_or_refused():
    assert format_bytes(np.int64(1536), digits=np.int64(1)) == "1.5 KiB"
    assert format_bytes(-0.001) == "0 B"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: format_bytes(1536, digits="2"), "digits is '2'"),
        (lambda: format_bytes(1536, digits=-1), "digits is -1"),
        (lambda: format_bytes(10**400), "too large for a float"),
        (lambda: collective_bytes("all_reduce", 10**400, 4), "too large for a float"),
        (lambda: model_states(10**400, 8, "ddp"), "too large for a float"),
        (lambda: max_parameters(80e9, 8, "ddp", Recipe("t", 0, 0, 0, 0, 0, "s")), "costs 0 bytes per parameter"),
        (lambda: strong_scaling(4, 1e308, 1e10, 0), "the number of samples is 1e\\+308; .* of at most 1e\\+30"),
        (lambda: Llama("a", 1, 1, 1, 1, 1, 1), "hidden is 'a'"),
        (lambda: Llama(1, -1, 1, 1, 1, 1, 1), "layers is -1"),
    ],
)
def test_meaningless_numbers_are_one_sentence(call, says):
    with pytest.raises(ValueError, match=says):
        call()
