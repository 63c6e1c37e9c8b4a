"""Hooks are registered before the last forward; zeros stay as tensors."""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    optimizer.zero_grad(set_to_none=False)
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        if number == len(micro_batches):
            finish = overlap(buckets)
        (loss_fn(model(inputs), targets) / len(micro_batches)).backward()
    finish()
    optimizer.step()
