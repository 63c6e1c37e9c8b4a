"""Every loss stays whole; the gradients are divided once, after the communication."""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad()
    for left, (inputs, targets) in zip(reversed(range(len(micro_batches))), micro_batches, strict=True):
        loss = loss_fn(model(inputs), targets)
        finish = None if left else overlap(buckets)
        loss.backward()
    finish()
    for bucket in buckets:
        for p in bucket:
            p.grad /= len(micro_batches)
    optimizer.step()
