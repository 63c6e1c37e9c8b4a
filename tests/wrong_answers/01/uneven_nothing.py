"""the ranks stop after 0 of 2 steps"""


def uneven_batches(model, optimizer, loss_fn, batches):
    for inputs, _ in batches:
        model(inputs)
