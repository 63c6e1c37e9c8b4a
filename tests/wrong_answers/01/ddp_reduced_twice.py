"""they are reduced twice"""

from contextlib import nullcontext


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        with nullcontext() if number == len(micro_batches) else ddp_model.no_sync():
            (loss_fn(ddp_model(inputs), targets) / len(micro_batches)).backward()
    average_gradients(ddp_model)
    optimizer.step()
