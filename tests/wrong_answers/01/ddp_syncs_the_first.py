"""only the first micro-batch is averaged"""

from contextlib import nullcontext


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches):
        with nullcontext() if number == 0 else ddp_model.no_sync():
            (loss_fn(ddp_model(inputs), targets) / len(micro_batches)).backward()
    optimizer.step()
