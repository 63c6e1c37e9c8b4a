"""What a model eats: samples and bytes a second, from its operations; and when loading becomes the step.

A GPU that does F operations a second, of which a sample takes f, takes F/f samples a second, and each has b bytes. All
GPUs of a job read from one store. A step lasts as long as the slower of compute and loading where batches are read
ahead, and both one after the other where they are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from utils.theory.arguments import check_amount, check_ranks, check_share, check_text, check_whole, check_yes_or_no
from utils.theory.flops import PEAK_FLOPS, flops_per_token
from utils.theory.models import PRESETS
from utils.theory.units import plain, shown

TOKEN_BYTES = 2  # of an id below 65,536; 4 for larger vocabularies


@dataclass(frozen=True)
class Sample:
    """flops: operations of forward and backward. bytes: as stored. source: where both come from."""

    name: str
    flops: float
    bytes: float
    source: str = ""

    def __post_init__(self) -> None:
        check_text("name", self.name, "what a sample is called")
        check_amount("flops", self.flops, "operations for one sample, forward and backward", "such as 25e9")
        check_amount("bytes", self.bytes, "bytes of one sample, as stored", "such as 110e3")


def text(model: str, sequence: int = 4096, token_bytes: float = TOKEN_BYTES) -> Sample:
    """A sequence of tokens for a model in `models.PRESETS`, stored as their ids."""
    if model not in PRESETS:
        raise ValueError(f"model is {shown(model)}; give one of theory.models.PRESETS, such as 'Llama-2-7B'")
    check_amount("token_bytes", token_bytes, "bytes of a token's id", "such as 2")
    config = PRESETS[model]
    check_whole("sequence", sequence, "a number of tokens", most=2**24)
    sequence = int(sequence)
    flops = sequence * flops_per_token(config.parameters, config.layers, config.hidden, sequence)
    return Sample(
        f"{model}, {sequence:,} tokens", flops, sequence * float(token_bytes), "6 N + 12 L h s for each token"
    )


#: Forward of one image of 224 x 224 in multiply-adds (torchvision's table of models), times 2 for operations, times 3
#: with backward. ImageNet's training set is 138 GB in 1.28 million files.
SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        Sample("ResNet-50, JPEG", 3 * 2 * 4.1e9, 110e3, "torchvision, resnet50; ImageNet"),
        Sample("ViT-B/16, JPEG", 3 * 2 * 17.6e9, 110e3, "torchvision, vit_b_16; ImageNet"),
        Sample("ViT-L/16, raw pixels", 3 * 2 * 61.6e9, 224 * 224 * 3, "torchvision, vit_l_16; 3 bytes a pixel"),
    )
}


@dataclass(frozen=True)
class Feed:
    """What a job takes. samples_per_second, bytes_per_second: of all its GPUs together."""

    samples_per_second: float
    bytes_per_second: float


def feed(sample: Sample, gpus: int, gpu: str = "H100", utilization: float = 0.4) -> Feed:
    """Samples and bytes that `gpus` GPUs take in a second at that share of their peak.

    gpu: a name in `flops.PEAK_FLOPS`. utilization: model operations over the peak, above 0 and below 1.
    """
    if not isinstance(sample, Sample):
        raise ValueError(f"sample is {shown(sample)}; give a Sample, such as SAMPLES['ResNet-50, JPEG']")
    if not isinstance(gpu, str) or gpu not in PEAK_FLOPS:
        raise ValueError(f"gpu is {shown(gpu)}; give one of {', '.join(PEAK_FLOPS)}")
    check_ranks("gpus", gpus, "a number of GPUs")
    check_share("utilization", utilization, "the GPU's peak")
    check_amount("utilization", utilization, "a share of the GPU's peak", "such as 0.4")
    samples = int(gpus) * PEAK_FLOPS[gpu] * float(utilization) / plain(sample.flops)
    return Feed(samples, samples * plain(sample.bytes))


def step_with_loading(compute: float, batch_bytes: float, store_rate: float, ranks: int, ahead: bool = True) -> float:
    """Seconds of a step of ranks that share one store.

    compute: seconds of a rank's step without loading. batch_bytes: of one rank's batch. store_rate: bytes per second of
    the store, for all ranks together. ahead: whether the next batch is read during the step.
    """
    check_amount("compute", compute, "a time in seconds", "such as 0.1", least=0)
    check_amount("batch_bytes", batch_bytes, "the bytes of a rank's batch", "such as 1e6", least=0)
    check_amount("store_rate", store_rate, "what the store delivers, in bytes per second", "such as 10e6")
    check_ranks("ranks", ranks)
    check_yes_or_no("ahead", ahead)
    loading = int(ranks) * plain(batch_bytes) / float(store_rate)
    return max(float(compute), loading) if ahead else float(compute) + loading


def most_ranks(compute: float, batch_bytes: float, store_rate: float) -> int:
    """How many ranks a store can feed before loading becomes the step: the whole part of compute · rate / bytes."""
    check_amount("batch_bytes", batch_bytes, "the bytes of a rank's batch", "such as 1e6")
    check_amount("compute", compute, "a time in seconds", "such as 0.1")
    check_amount("store_rate", store_rate, "what the store delivers, in bytes per second", "such as 10e6")
    return int(float(compute) * float(store_rate) / plain(batch_bytes) * (1 + 1e-12))


def checkpoint_bytes(parameters: float, bytes_per_parameter: float = 14) -> float:
    """Of a checkpoint to go on from: weights 2, master weights 4, both moments 8; gradients are not kept."""
    check_amount("parameters", parameters, "a number of parameters", "such as 70e9")
    check_amount("bytes_per_parameter", bytes_per_parameter, "bytes stored for each", "such as 14")
    return plain(parameters) * plain(bytes_per_parameter)


def checkpoint_stall(size: float, store_rate: float, copy_rate: float | None = None) -> float:
    """Seconds for which training stands still for a checkpoint of `size` bytes.

    store_rate: bytes per second that the store takes, from all who write. copy_rate: if the state is first copied into
    the host's memory, by all nodes together, and written from there while training goes on.
    """
    check_amount("size", size, "the bytes of a checkpoint", "such as 980e9")
    check_amount("store_rate", store_rate, "what the store takes, in bytes per second", "such as 10e9")
    if copy_rate is None:
        return plain(size) / float(store_rate)
    check_amount("copy_rate", copy_rate, "bytes copied per second by all nodes", "such as 400e9")
    return plain(size) / float(copy_rate)
