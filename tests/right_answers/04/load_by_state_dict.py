"""The moments by the optimizer's own `load_state_dict`; slices by `pad` and `chunk`."""

import torch
import torch.distributed as dist


def load(checkpoint, buckets, optimizer):
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def cut(whole):
        return torch.nn.functional.pad(whole, (0, -whole.numel() % ranks)).chunk(ranks)[rank].clone()

    state = {
        number: {name: cut(value) if value.dim() == 1 else value.clone() for name, value in moments.items()}
        for number, moments in enumerate(checkpoint["moments"])
    }
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    with torch.no_grad():
        for bucket, master, whole in zip(
            buckets, optimizer.param_groups[0]["params"], checkpoint["masters"], strict=True
        ):
            begin = 0
            for p in bucket:
                p.copy_(whole[begin : begin + p.numel()].view(p.shape))
                begin += p.numel()
            master.copy_(cut(whole))
