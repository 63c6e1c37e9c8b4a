"""The smallest errors of the logarithms, by steps of Gauss and Newton."""

import torch


def fit_alpha_beta(points):
    sizes, times = torch.tensor(points, dtype=torch.float64).T
    scale = torch.stack((times.min(), (times / sizes).min()))
    found = torch.ones(2, dtype=torch.float64)
    for _ in range(50):
        terms = torch.stack((scale[0] * torch.ones_like(sizes), scale[1] * sizes), dim=1)
        fitted = terms @ found
        off = torch.log(times / fitted)
        found = found + torch.linalg.lstsq(terms / fitted[:, None], off[:, None]).solution[:, 0]
    alpha, beta = (found * scale).tolist()
    return alpha, beta
