"""Well-known models by name: `PRESETS["Llama-2-7B"].parameters` is 6738415616.

Only sizes are listed here; the numbers of parameters follow from the rules in `families`. Sources of the sizes, where
not said otherwise: the models' published configurations, as collected in Lightning-AI/litgpt, litgpt/config.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from utils.theory.architecture import Architecture
from utils.theory.arguments import nearest
from utils.theory.families import gemma, gemma2, gpt2, llama, mistral, mpt, olmo, olmo2, opt, pythia, qwen2, qwen3
from utils.theory.units import shown

#: The family whose rule is `Architecture` as it stands.
Llama = llama

_LLAMA = {
    # Llama 1: Touvron et al., arXiv:2302.13971, Table 2; the paper calls the third 32.5B.
    "Llama-1-7B": llama(4096, 32, 32),
    "Llama-1-13B": llama(5120, 40, 40),
    "Llama-1-33B": llama(6656, 60, 52),
    "Llama-1-65B": llama(8192, 80, 64),
    "Llama-2-7B": llama(4096, 32, 32, 32, 128, 11008, 32000),
    "Llama-2-13B": llama(5120, 40, 40, 40, 128, 13824, 32000),
    "Llama-2-70B": llama(8192, 80, 64, 8, 128, 28672, 32000),
    "Llama-3-8B": llama(4096, 32, 32, 8, 128, 14336, 128256),
    "Llama-3-70B": llama(8192, 80, 64, 8, 128, 28672, 128256),
    "Llama-3.1-8B": llama(4096, 32, 32, 8, 128, 14336, 128256),
    "Llama-3.1-70B": llama(8192, 80, 64, 8, 128, 28672, 128256),
    "Llama-3.1-405B": llama(16384, 126, 128, 8, 128, 53248, 128256),
    "Llama-3.2-1B": llama(2048, 16, 32, 8, 64, 8192, 128256, tied_embeddings=True),
    "Llama-3.2-3B": llama(3072, 28, 24, 8, 128, 8192, 128256, tied_embeddings=True),
    "Llama-3.3-70B": llama(8192, 80, 64, 8, 128, 28672, 128256),
    "TinyLlama-1.1B": llama(2048, 22, 32, 4, 64, 5632, 32000),
}

_MISTRAL = {
    "Mistral-7B-v0.1": mistral(4096, 32, 32, 8, 128, 14336, 32000),
    "Mistral-7B-v0.2": mistral(4096, 32, 32, 8, 128, 14336, 32000),
    "Mistral-7B-v0.3": mistral(4096, 32, 32, 8, 128, 14336, 32768),
    # Nemo and Ministral: the configurations at Hugging Face, quoted in public repositories.
    "Mistral-Nemo-12B": mistral(5120, 40, 32, 8, 128, 14336, 131072),
    "Ministral-8B": mistral(4096, 36, 32, 8, 128, 12288, 131072),
    "Mistral-Small-24B": mistral(5120, 40, 32, 8, 128, 32768, 131072),
    "Mistral-Large-123B": mistral(12288, 88, 96, 8, 128, 28672, 32768),
}

_QWEN = {
    "Qwen2.5-0.5B": qwen2(896, 24, 14, 2, 64, 4864, 151936, tied_embeddings=True),
    "Qwen2.5-1.5B": qwen2(1536, 28, 12, 2, 128, 8960, 151936, tied_embeddings=True),
    "Qwen2.5-3B": qwen2(2048, 36, 16, 2, 128, 11008, 151936, tied_embeddings=True),
    "Qwen2.5-7B": qwen2(3584, 28, 28, 4, 128, 18944, 152064),
    "Qwen2.5-14B": qwen2(5120, 48, 40, 8, 128, 13824, 152064),
    "Qwen2.5-32B": qwen2(5120, 64, 40, 8, 128, 27648, 152064),
    "Qwen2.5-72B": qwen2(8192, 80, 64, 8, 128, 29568, 152064),
    # Stored checkpoints of the tied Qwen3 models hold the output matrix a second time.
    "Qwen3-0.6B": qwen3(1024, 28, 16, 8, 128, 3072, 151936, tied_embeddings=True),
    "Qwen3-1.7B": qwen3(2048, 28, 16, 8, 128, 6144, 151936, tied_embeddings=True),
    "Qwen3-4B": qwen3(2560, 36, 32, 8, 128, 9728, 151936, tied_embeddings=True),
    "Qwen3-8B": qwen3(4096, 36, 32, 8, 128, 12288, 151936),
    "Qwen3-14B": qwen3(5120, 40, 40, 8, 128, 17408, 151936),
    "Qwen3-32B": qwen3(5120, 64, 64, 8, 128, 25600, 151936),
}

_GEMMA = {
    # The reports count 256128 rows of the embedding, the checkpoints have 256000.
    "Gemma-2B": gemma(2048, 18, 8, 1, 256, 16384, 256000),
    "Gemma-7B": gemma(3072, 28, 16, 16, 256, 24576, 256000),
    # The report prints twice the width of the MLP: the gate and the up matrix together.
    "Gemma-2-2B": gemma2(2304, 26, 8, 4, 256, 9216, 256000),
    "Gemma-2-9B": gemma2(3584, 42, 16, 8, 256, 14336, 256000),
    "Gemma-2-27B": gemma2(4608, 46, 32, 16, 128, 36864, 256000),
}

_OLMO = {
    "OLMo-1B": olmo(2048, 16, 16, 16, 128, 8192, 50304, tied_embeddings=True),
    "OLMo-7B": olmo(4096, 32, 32, 32, 128, 11008, 50304),
    "OLMo-2-0425-1B": olmo2(2048, 16, 16, 16, 128, 8192, 100352),
    "OLMo-2-1124-7B": olmo2(4096, 32, 32, 32, 128, 11008, 100352),
    "OLMo-2-1124-13B": olmo2(5120, 40, 40, 40, 128, 13824, 100352),
    # OLMo team, arXiv:2501.00656, and the count quoted from it.
    "OLMo-2-0325-32B": olmo2(5120, 64, 40, 8, 128, 27648, 100352),
}

_GPT = {
    "GPT-2": gpt2(768, 12, 12),
    "GPT-2-medium": gpt2(1024, 24, 16),
    "GPT-2-large": gpt2(1280, 36, 20),
    "GPT-2-xl": gpt2(1600, 48, 25),
    # GPT-3: Brown et al., arXiv:2005.14165, Table 2.1, counted as GPT-2 with 2048 positions; no exact counts were
    # published, the paper rounds. Two rows of the table do not multiply out, and are read so that heads times head_dim
    # is the width: 1.3B prints 24 heads of 128 at a width of 2048 (here 16), 13B prints a width of 5140 (here 5120).
    "GPT-3-125M": gpt2(768, 12, 12, 2048),
    "GPT-3-350M": gpt2(1024, 24, 16, 2048),
    "GPT-3-760M": gpt2(1536, 24, 16, 2048),
    "GPT-3-1.3B": gpt2(2048, 24, 16, 2048),
    "GPT-3-2.7B": gpt2(2560, 32, 32, 2048),
    "GPT-3-6.7B": gpt2(4096, 32, 32, 2048),
    "GPT-3-13B": gpt2(5120, 40, 40, 2048),
    "GPT-3-175B": gpt2(12288, 96, 96, 2048),
}

_PYTHIA = {
    "Pythia-14M": pythia(128, 6, 4),
    "Pythia-31M": pythia(256, 6, 8),
    "Pythia-70M": pythia(512, 6, 8),
    "Pythia-160M": pythia(768, 12, 12),
    "Pythia-410M": pythia(1024, 24, 16),
    "Pythia-1B": pythia(2048, 16, 8),
    "Pythia-1.4B": pythia(2048, 24, 16),
    "Pythia-2.8B": pythia(2560, 32, 32),
    # The two largest pad the vocabulary for more tensor-parallel ranks.
    "Pythia-6.9B": pythia(4096, 32, 32, 50432),
    "Pythia-12B": pythia(5120, 36, 40, 50688),
}

_OPT = {
    # Zhang et al., arXiv:2205.01068, Table 1.
    "OPT-125M": opt(768, 12, 12),
    "OPT-350M": opt(1024, 24, 16, embedding_width=512, final_norm=False),
    "OPT-1.3B": opt(2048, 24, 32),
    "OPT-2.7B": opt(2560, 32, 32),
    "OPT-6.7B": opt(4096, 32, 32),
    "OPT-13B": opt(5120, 40, 40),
    "OPT-30B": opt(7168, 48, 56),
    "OPT-66B": opt(9216, 64, 72),
    "OPT-175B": opt(12288, 96, 96),
}

_RELEASED = {"positions": 0, "vocabulary": 50432, "biases": "none", "norm": "layer without bias"}
_MPT = {
    # mosaicml/llm-foundry, scripts/train/yamls/pretrain, with sequences of 2048.
    "MPT-125m": mpt(768, 12, 12),
    "MPT-350m": mpt(1024, 24, 16),
    "MPT-760m": mpt(1536, 24, 12),
    "MPT-1b": mpt(2048, 24, 16),
    "MPT-3b": mpt(2560, 32, 20),
    "MPT-7b": mpt(4096, 32, 32),
    "MPT-13b": mpt(5120, 40, 40),
    "MPT-30b": mpt(7168, 48, 56),
    "MPT-70b": mpt(8192, 80, 64),
    # The checkpoints' model cards.
    "MPT-7b-released": mpt(4096, 32, 32, **_RELEASED),
    "MPT-30b-released": mpt(7168, 48, 64, **_RELEASED),
}

_OTHER_NAMES = {
    "Llama-7B": "Llama-1-7B",
    "Llama-13B": "Llama-1-13B",
    "Llama-30B": "Llama-1-33B",
    "Llama-33B": "Llama-1-33B",
    "Llama-65B": "Llama-1-65B",
    "Mistral-7B": "Mistral-7B-v0.1",
    "Mistral-Nemo": "Mistral-Nemo-12B",
    "Mistral-Small": "Mistral-Small-24B",
    "Mistral-Large": "Mistral-Large-123B",
    "OLMo-2-1B": "OLMo-2-0425-1B",
    "OLMo-2-7B": "OLMo-2-1124-7B",
    "OLMo-2-13B": "OLMo-2-1124-13B",
    "OLMo-2-32B": "OLMo-2-0325-32B",
    "GPT-2-small": "GPT-2",
    "GPT-3-small": "GPT-3-125M",
    "GPT-3-medium": "GPT-3-350M",
    "GPT-3-large": "GPT-3-760M",
    "GPT-3-xl": "GPT-3-1.3B",
    "GPT-3": "GPT-3-175B",
}


class UnknownModel(KeyError, ValueError):
    """No preset has that name."""

    def __str__(self) -> str:
        return self.args[0]  # a KeyError shows its message in quotes


class Presets(Mapping[str, Architecture]):
    """Models by name. Small and capital letters are alike; some models have further names, but each is listed once."""

    def __init__(self, models: dict[str, Architecture], other_names: dict[str, str]) -> None:
        self._models = models
        self._names = {name.lower(): name for name in models} | {k.lower(): v for k, v in other_names.items()}

    def __getitem__(self, name: str) -> Architecture:
        return self._models[self.named(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def __repr__(self) -> str:
        return f"Presets({len(self)} models: {', '.join(list(self)[:3])} … {list(self)[-1]}; list(PRESETS) names all)"

    def named(self, name: str) -> str:
        """The name under which a model is listed; UnknownModel, with the nearest names, if there is none."""
        known = self._names.get(name.lower()) if isinstance(name, str) else None
        if known is None:
            near = nearest(_short(name), self._names, count=3)
            close = list(dict.fromkeys(repr(self._names[each]) for each in near))
            hint = f"did you mean {' or '.join(close)}?" if close else "the names are those of list(PRESETS)"
            raise UnknownModel(f"model is {shown(name)}, which is not known here; {hint}")
        return known


def _short(name: object) -> object:
    """A name at Hugging Face without the organization, and without what only says in which form the weights are."""
    return (
        re.sub("-(hf|chat|instruct|base|it)$", "", name.rpartition("/")[2].lower()) if isinstance(name, str) else name
    )


PRESETS = Presets(_LLAMA | _MISTRAL | _QWEN | _GEMMA | _OLMO | _GPT | _PYTHIA | _OPT | _MPT, _OTHER_NAMES)


def preset(name: str) -> Architecture:
    """`PRESETS[name]`."""
    return PRESETS[name]
