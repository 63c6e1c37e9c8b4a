"""alpha is 0. It is what a message takes besides its bytes"""


def fit_alpha_beta(points):
    return 0.0, sum(seconds for _, seconds in points) / sum(size for size, _ in points)
