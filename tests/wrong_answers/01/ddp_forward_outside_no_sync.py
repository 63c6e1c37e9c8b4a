"""Do both the forward and the backward of all but the last stand inside `no_sync`?"""

from contextlib import nullcontext


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        loss = loss_fn(ddp_model(inputs), targets) / len(micro_batches)
        with nullcontext() if number == len(micro_batches) else ddp_model.no_sync():
            loss.backward()
    optimizer.step()
