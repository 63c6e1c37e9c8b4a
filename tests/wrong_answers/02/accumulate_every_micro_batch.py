"""micro-batches cost"""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        before = [[None if p.grad is None else p.grad.clone() for p in bucket] for bucket in buckets]
        for bucket in buckets:
            for p in bucket:
                p.grad = None
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        finish = overlap(buckets)
        loss.backward()
        finish()
        for bucket, earlier in zip(buckets, before, strict=True):
            for p, gradient in zip(bucket, earlier, strict=True):
                if gradient is not None:
                    p.grad += gradient
    optimizer.step()
