"""the two are swapped. alpha, in seconds, comes first"""

import torch


def fit_alpha_beta(points):
    sizes, times = torch.tensor(points, dtype=torch.float64).T
    columns = torch.stack((1 / times, sizes / times), dim=1)
    ones = torch.ones(len(points), 1, dtype=torch.float64)
    alpha, beta = torch.linalg.lstsq(columns, ones).solution.flatten().tolist()
    return beta, alpha
