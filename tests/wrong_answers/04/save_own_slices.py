"""those of rank 0's slice alone: gather the slices of all ranks"""


def save(buckets, optimizer):
    masters = [m.detach().clone() for m in optimizer.param_groups[0]["params"]]
    moments = [{k: v.clone() for k, v in optimizer.state[m].items()} for m in optimizer.param_groups[0]["params"]]
    return {"masters": masters, "moments": moments}
