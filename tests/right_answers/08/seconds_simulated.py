"""Event by event, with the simulation of lesson 02."""

from utils.theory.sharing import Link
from utils.theory.step_time import Layer, simulate_step


def predict_seconds(job, strategy):
    layers = [Layer(t, gradient_bytes=4 * p) for t, p in zip(job.forward, job.parameters, strict=True)]
    inside, across = Link(job.inside, job.latency), Link(job.across, job.latency)
    options = {"shard_size": job.per_node} if strategy == "hsdp" else {}
    if strategy in ("ddp", "zero1"):
        options["bucket_bytes"] = 1
    if strategy != "ddp":
        options["overlap"] = False
    if job.nodes > 1 or strategy == "hsdp":
        options |= {"across": across, "nodes": job.nodes}
    return simulate_step(layers, job.ranks, inside, strategy, **options).seconds
