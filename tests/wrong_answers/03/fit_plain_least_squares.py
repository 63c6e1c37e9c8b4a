"""fit the relative errors"""

import torch


def fit_alpha_beta(points):
    sizes, times = torch.tensor(points, dtype=torch.float64).T
    columns = torch.stack((torch.ones_like(sizes), sizes), dim=1)
    alpha, beta = torch.linalg.lstsq(columns, times[:, None]).solution.flatten().tolist()
    return alpha, beta
