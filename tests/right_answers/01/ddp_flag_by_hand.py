"""Sets DDP's flag in time, instead of using the context manager."""


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        ddp_model.require_backward_grad_sync = number == len(micro_batches)
        (loss_fn(ddp_model(inputs), targets) / len(micro_batches)).backward()
    optimizer.step()
