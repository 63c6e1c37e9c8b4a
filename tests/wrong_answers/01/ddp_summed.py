"""the micro-batches are summed, not averaged: divide each loss by their number: every one is 3.0"""

from contextlib import nullcontext


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        with nullcontext() if number == len(micro_batches) else ddp_model.no_sync():
            loss_fn(ddp_model(inputs), targets).backward()
    optimizer.step()
