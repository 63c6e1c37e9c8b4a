"""Laws of model states on inputs that nobody chose."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.theory.memory import SHARDED, STRATEGIES, max_parameters, model_states
from utils.theory.recipes import PRECISION_RECIPES, Recipe

# Bytes that a float holds exactly, so that equalities below are exact up to the division by N.
amounts = st.sampled_from([0, 0.5, 1, 2, 4, 8])
own = st.builds(
    Recipe,
    title=st.just("any"),
    weights=amounts,
    gradients=st.sampled_from([4, 6, 8]),
    master_weights=amounts,
    optimizer=amounts,
    communicated_gradients=st.sampled_from([2, 4]),
    source=st.just("here"),
    gradient_copy=st.sampled_from([0, 2, 4]),
)
recipes = st.one_of(st.sampled_from(sorted(PRECISION_RECIPES)), own)
parameters = st.integers(1, 10**13)
shard_sizes = st.integers(1, 64)
replicas = st.integers(1, 64)


def states(psi, world_size, strategy, recipe, shard_size=1):
    return model_states(psi, world_size, strategy, shard_size if strategy == "hsdp" else None, recipe)


@given(psi=parameters, g=shard_sizes, r=replicas, recipe=recipes, strategy=st.sampled_from(STRATEGIES))
def test_shards_sum_to_the_whole(psi, g, r, recipe, strategy):
    """All ranks that share out a state hold it once between them; a state that is not shared out, each rank once."""
    whole, each = states(psi, 1, "ddp", recipe), states(psi, g * r, strategy, recipe, g)
    ranks = g if strategy == "hsdp" else g * r
    for state in ("weights", "master_weights", "optimizer"):
        copies = 1 if state in SHARDED[strategy] else ranks
        assert ranks * getattr(each, state) == pytest.approx(copies * getattr(whole, state), rel=1e-12)
    if strategy != "zero1":
        copies = 1 if "gradients" in SHARDED[strategy] else ranks
        assert ranks * each.gradients == pytest.approx(copies * whole.gradients, rel=1e-12)
    assert each.total == sum((each.weights, each.gradients, each.master_weights, each.optimizer, each.buckets))


@given(psi=parameters, recipe=recipes, strategy=st.sampled_from(STRATEGIES))
def test_one_rank_holds_everything(psi, recipe, strategy):
    assert states(psi, 1, strategy, recipe).total == pytest.approx(states(psi, 1, "ddp", recipe).total, rel=1e-12)


@given(psi=parameters, n=st.integers(1, 10**5), more=st.integers(1, 10**5), recipe=recipes)
def test_more_ranks_never_hold_more(psi, n, more, recipe):
    for strategy in ("ddp", "zero1", "zero2", "zero3", "fsdp"):
        assert states(psi, n + more, strategy, recipe).total <= states(psi, n, strategy, recipe).total


@given(psi=parameters, g=shard_sizes, r=replicas, recipe=recipes)
def test_each_strategy_holds_no_more_than_the_one_before(psi, g, r, recipe):
    total = {strategy: states(psi, g * r, strategy, recipe, g).total for strategy in STRATEGIES}
    slack = 1 + 1e-12
    assert total["zero1"] <= total["ddp"] * slack
    assert total["zero2"] <= total["zero1"] * slack
    assert total["zero3"] <= total["zero2"] * slack
    assert total["zero3"] == total["fsdp"] <= total["hsdp"] * slack
    assert total["hsdp"] <= total["ddp"] * slack


@given(psi=parameters, factor=st.integers(2, 1000), n=st.integers(1, 4096), recipe=recipes)
def test_states_are_in_proportion_to_parameters(psi, factor, n, recipe):
    for strategy in ("ddp", "zero2", "fsdp"):
        many, one = states(factor * psi, n, strategy, recipe), states(psi, n, strategy, recipe)
        assert many.total == pytest.approx(factor * one.total, rel=1e-12)


@given(
    memory=st.integers(1, 10**13),
    g=shard_sizes,
    r=replicas,
    recipe=st.sampled_from(sorted(PRECISION_RECIPES)),
    strategy=st.sampled_from(STRATEGIES),
)
def test_the_largest_model_fits_and_the_next_does_not(memory, g, r, recipe, strategy):
    shard = g if strategy == "hsdp" else None
    most = max_parameters(memory, g * r, strategy, recipe, shard_size=shard)
    used = PRECISION_RECIPES[recipe]
    ranks = g if strategy == "hsdp" else g * r
    sharded = SHARDED[strategy]
    parts = {
        "weights": Fraction(used.weights),
        "gradients": Fraction(used.gradients - used.gradient_copy),
        "master_weights": Fraction(used.master_weights),
        "optimizer": Fraction(used.optimizer + used.gradient_copy),
    }
    each = sum(size / (ranks if state in sharded else 1) for state, size in parts.items())
    assert most * each <= memory < (most + 1) * each
