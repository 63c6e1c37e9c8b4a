"""a few sizes decide alone"""


def fit_alpha_beta(points):
    (small, short), (large, long) = min(points), max(points)
    beta = (long - short) / (large - small)
    return short - beta * small, beta
