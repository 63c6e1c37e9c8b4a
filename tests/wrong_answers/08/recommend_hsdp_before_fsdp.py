"""HSDP is taken where FSDP is about as fast"""


def recommend(job, memory):
    fitting = [s for s in ("ddp", "zero1", "hsdp", "fsdp") if predict_memory(job, s) <= memory]
    least = min((predict_seconds(job, s) for s in fitting), default=0)
    return next((s for s in fitting if predict_seconds(job, s) <= 1.05 * least), None)
