"""Other people's memory calculators, as small functions that give what theirs print, to the printed digit.

Each function follows the rules of the tool named in it, in our own words, with the tool's defaults and with its known
faults, which `Estimate.quirks` names. The tools disagree because they count different things under different
conventions; `utils.theory.explain` lists the differences term by term. All sizes are bytes. A number that is not what
its argument says (a count that is not whole or below 1, an amount that is not finite and above 0) raises ValueError,
in one sentence.
"""

from utils.theory.peers.accelerate import accelerate
from utils.theory.peers.deepspeed import deepspeed_zero2, deepspeed_zero3
from utils.theory.peers.eleuther import eleuther
from utils.theory.peers.job import STAGES, job_estimates, own_estimate
from utils.theory.peers.megatron import megatron

__all__ = [
    "STAGES",
    "accelerate",
    "deepspeed_zero2",
    "deepspeed_zero3",
    "eleuther",
    "job_estimates",
    "megatron",
    "own_estimate",
]
