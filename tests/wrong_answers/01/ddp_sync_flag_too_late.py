"""Is synchronising switched on too late"""


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(micro_batches, start=1):
        with ddp_model.no_sync():
            loss = loss_fn(ddp_model(inputs), targets) / len(micro_batches)
        ddp_model.require_backward_grad_sync = number == len(micro_batches)
        loss.backward()
    optimizer.step()
