"""The planner: model, GPUs, links, sequence and batch in; every strategy, what fits and what is fastest out.

    found = plan("Llama-3-8B", gpus=64, gpu="H100 80GB", sequence=8192, global_batch=256)
    found                       # draws itself
    found.recommendation        # one sentence with its reason
    found.best.strategy, found.best.prediction.seconds

Memory is `theory.breakdown`'s, step times are `theory.scale`'s. Jobs of TP x PP x CP units: `hybrid_job`.
"""

from utils.theory.planner.ask import Ask
from utils.theory.planner.plan import Plan, Row, plan
from utils.theory.planner.units import HybridJob, hybrid_job, hybrid_jobs, placements

__all__ = ["Ask", "HybridJob", "Plan", "Row", "hybrid_job", "hybrid_jobs", "placements", "plan"]
