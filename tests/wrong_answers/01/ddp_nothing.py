"""`optimizer.step()` is never called"""


def ddp_accumulate(ddp_model, optimizer, loss_fn, micro_batches):
    with ddp_model.no_sync():
        pass
