"""rank 0's own weights changed (all ranks agree, but on other numbers)"""

import torch


def broadcast_model(model):
    torch.manual_seed(0)
    for tensor in model.parameters():
        torch.nn.init.normal_(tensor.detach())
