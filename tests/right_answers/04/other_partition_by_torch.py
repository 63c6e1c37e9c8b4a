"""The vector and the views by torch's own `parameters_to_vector` and `vector_to_parameters`."""

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def partition(parameters, rank, world_size):
    with torch.no_grad():
        numbers = parameters_to_vector([p.contiguous() for p in parameters])
        flat = torch.cat([numbers, numbers.new_zeros(-numbers.numel() % world_size)])
        vector_to_parameters(flat, parameters)
        return flat, flat.tensor_split(world_size)[rank]
