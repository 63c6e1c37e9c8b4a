"""Bytes on the wire: of one collective (`collective.py`), and of a training step (`step.py`, `step_traffic.py`)."""

from utils.theory.traffic.collective import (
    KINDS,
    RING_PASSES,
    Traffic,
    algorithm_bandwidth,
    bus_bandwidth,
    check_group,
    collective_bytes,
    gloo_bytes,
    gloo_received_bytes,
    received_bytes,
    traffic_by_rank,
)
from utils.theory.traffic.step import forward_bytes, step_bytes
from utils.theory.traffic.step_traffic import Collective, NodeTraffic, StepTraffic

__all__ = [
    "KINDS",
    "RING_PASSES",
    "Collective",
    "NodeTraffic",
    "StepTraffic",
    "Traffic",
    "algorithm_bandwidth",
    "bus_bandwidth",
    "check_group",
    "collective_bytes",
    "forward_bytes",
    "gloo_bytes",
    "gloo_received_bytes",
    "received_bytes",
    "step_bytes",
    "traffic_by_rank",
]
