"""Waits for the futures of the last layers first, half of them by asking again and again."""

import time

import torch.distributed as dist


def average_gradients(model):
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    works = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
    for number, work in reversed(list(enumerate(works))):
        if number % 2:
            work.get_future().wait()
        else:
            while not work.is_completed():
                time.sleep(0.001)
        gradients[number] /= dist.get_world_size()
