"""The step-time model at scale: a job on a machine, what its step takes and why, against published runs.

job = Job(PRESETS["Llama-3.1-8B"], gpus=64, sequence=8192, micro_batch=2, again="operations")
predicted = predict(job, machine("H100 80GB", gigabits=3200))
predicted.seconds, predicted.per_gpu, predicted.mfu, predicted.parts, predicted.binds

summary(score())        # against the published runs of data/published_runs.csv, beside a constant MFU
"""

from utils.theory.scale.hardware import GPUS, Gpu, Machine, machine
from utils.theory.scale.job import AGAIN, Job
from utils.theory.scale.published import Run, published_runs
from utils.theory.scale.score import Change, Scored, Summary, changes, score, summary
from utils.theory.scale.software import SOFTWARE, Software
from utils.theory.scale.step import Prediction, predict

__all__ = [
    "AGAIN",
    "GPUS",
    "SOFTWARE",
    "Change",
    "Gpu",
    "Job",
    "Machine",
    "Prediction",
    "Run",
    "Scored",
    "Software",
    "Summary",
    "changes",
    "machine",
    "predict",
    "published_runs",
    "score",
    "summary",
]
