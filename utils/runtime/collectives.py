"""The two collectives on flat tensors under one name each.

torch 2.13 renamed `all_gather_into_tensor` to `all_gather_single` and `reduce_scatter_tensor` to
`reduce_scatter_single`; the old names warn from then on, and the new ones do not exist before.
"""

import torch.distributed as dist

all_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
