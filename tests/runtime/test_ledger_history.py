"""What a ledger samples over a step: events in order, activations while autograd keeps them, nothing left behind."""

import pickle

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from utils.runtime.ledger import Ledger

WIDE, SAMPLES = 16, 5
ROW = SAMPLES * WIDE * 4  # bytes of one activation


def three_layers():
    return nn.Sequential(nn.Linear(WIDE, WIDE), nn.Sigmoid(), nn.Linear(WIDE, WIDE))


def step(model, optimizer, batch=None):
    model(torch.randn(SAMPLES, WIDE) if batch is None else batch).sum().backward()
    optimizer.step()


@pytest.fixture
def recorded():
    model = three_layers()
    optimizer = torch.optim.Adam(model.parameters())
    with Ledger(model, optimizer).over_time() as history:
        step(model, optimizer)
    return model, history


def test_events_come_in_the_order_of_the_step(recorded):
    _, history = recorded
    assert [sample.label for sample in history.samples] == [
        "forward begins",
        "forward of 0 begins", "forward of 0 done",
        "forward of 1 begins", "forward of 1 done",
        "forward of 2 begins", "forward of 2 done",
        "forward done",
        "backward begins", "backward of 2 begins", "backward of 1 begins", "backward of 0 begins", "backward done",
        "step begins", "step done",
    ]  # fmt: skip


def test_activations_rise_in_forward_and_fall_in_backward(recorded):
    _, history = recorded
    at = {sample.label: sample.holdings.activations for sample in history.samples}
    # A linear layer keeps its input, a sigmoid its output, which is the next layer's input: one storage.
    assert [at[f"forward of {i} done"] for i in range(3)] == [ROW, 2 * ROW, 2 * ROW]
    assert at["backward of 2 begins"] == 2 * ROW and at["backward of 0 begins"] == ROW
    assert at["backward done"] == at["step done"] == 0


def test_weights_are_never_activations_and_gradients_fill_up(recorded):
    model, history = recorded
    psi = sum(p.numel() for p in model.parameters())
    assert {sample.holdings.weights for sample in history.samples} == {4 * psi}
    gradients = [sample.holdings.gradients for sample in history.samples if sample.phase == "backward"]
    assert gradients == sorted(gradients) and gradients[0] == 0 and gradients[-1] == 4 * psi
    assert history.peak_of("activations") == 2 * ROW
    assert history.peak_of("moments") == 8 * psi
    assert history.peak.label == "step done"


def test_nothing_is_left_behind_and_results_are_the_same():
    torch.manual_seed(0)
    plain, watched = three_layers(), three_layers()
    watched.load_state_dict(plain.state_dict())
    batch = torch.randn(SAMPLES, WIDE)
    optimizer = torch.optim.SGD(watched.parameters(), lr=0.1)
    ledger = Ledger(watched, optimizer)
    with ledger.over_time() as history:
        step(watched, optimizer, batch)
    length = len(history)
    step(plain, torch.optim.SGD(plain.parameters(), lr=0.1), batch)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))
    step(watched, optimizer, batch)
    assert len(history) == length
    for module in watched.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks


def test_hooks_are_removed_when_the_body_raises():
    model = three_layers()
    ledger = Ledger(model)
    with pytest.raises(ZeroDivisionError), ledger.over_time():
        raise ZeroDivisionError
    assert not model[0]._forward_hooks
    with ledger.over_time() as history:
        pass
    assert len(history) == 0 and repr(history) == "History(no samples)"
    with pytest.raises(ValueError, match="the history has no samples"):
        _ = history.peak


def test_a_graph_that_is_never_walked_back_keeps_its_activations_until_it_is_dropped():
    model = three_layers()
    ledger = Ledger(model)
    with ledger.over_time():
        loss = model(torch.randn(SAMPLES, WIDE)).sum()
        assert ledger.at_rest().activations == 2 * ROW
        del loss
        assert ledger.at_rest().activations == 0


def test_recomputation_keeps_the_input_of_each_segment_only():
    blocks = nn.ModuleList(three_layers() for _ in range(4))

    class Recomputed(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = blocks

        def forward(self, x):
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return x

    model = Recomputed()
    ledger = Ledger(model)
    with ledger.over_time() as history:
        model(torch.randn(SAMPLES, WIDE, requires_grad=True)).sum().backward()
    at_end_of_forward = next(s for s in history.samples if s.label == "forward done").holdings.activations
    assert at_end_of_forward == 4 * ROW


def test_notes_and_modules_that_return_several_tensors():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDE, WIDE)

        def forward(self, x):
            return {"y": self.layer(x), "x": x}

    model = Pair()
    ledger = Ledger(model)
    with ledger.over_time() as history:
        out = model(torch.randn(SAMPLES, WIDE))
        ledger.note("between")
        out["y"].sum().backward()
    labels = [sample.label for sample in history.samples]
    assert "between" in labels and labels[-1] == "backward done"
    with pytest.raises(RuntimeError, match="no history is being recorded"):
        ledger.note("after")
    with ledger.over_time(), pytest.raises(RuntimeError, match="records a history already"), ledger.over_time():
        pass


def test_two_steps_with_retained_graphs_and_a_backward_that_fails():
    model = three_layers()
    ledger = Ledger(model)

    def fail(grad):
        raise ArithmeticError("on purpose")

    with ledger.over_time() as history:
        out = model(torch.randn(SAMPLES, WIDE))
        out.register_hook(fail)
        with pytest.raises(ArithmeticError):
            out.sum().backward()
        del out
        loss = model(torch.randn(SAMPLES, WIDE)).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert [s.label for s in history.samples].count("backward done") == 2
    assert [s.label for s in history.samples].count("backward begins") >= 2


def test_a_history_travels_and_says_its_peak(recorded):
    _, history = recorded
    again = pickle.loads(pickle.dumps(history))
    assert again.samples == history.samples
    assert repr(again) == f"History of 15 events, at most {history.peak.holdings.total:,} B, when step done"
