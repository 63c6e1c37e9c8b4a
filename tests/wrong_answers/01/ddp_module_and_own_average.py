"""the gradients are right, but not by DDP"""


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for inputs, targets in micro_batches:
        (loss_fn(ddp_model.module(inputs), targets) / len(micro_batches)).backward()
    average_gradients(ddp_model)
    optimizer.step()
