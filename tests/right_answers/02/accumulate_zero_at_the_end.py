"""Clears at the end, for the next step, and takes the micro-batches from the last to the first."""


def accumulate(model, optimizer, loss_fn, micro_batches, buckets):
    for left in reversed(range(len(micro_batches))):
        inputs, targets = micro_batches[left]
        loss = loss_fn(model(inputs), targets) / len(micro_batches)
        finish = overlap(buckets) if left == 0 else None
        loss.backward()
        if finish:
            finish()
    optimizer.step()
    optimizer.zero_grad()
