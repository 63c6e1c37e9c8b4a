"""The two normal equations, by hand."""

import math


def fit_alpha_beta(points):
    largest = max(size for size, _ in points)
    u = [1 / seconds for _, seconds in points]
    v = [size / largest / seconds for size, seconds in points]
    uu, vv = math.fsum(a * a for a in u), math.fsum(b * b for b in v)
    uv = math.fsum(a * b for a, b in zip(u, v, strict=True))
    determinant = uu * vv - uv * uv
    alpha = (math.fsum(u) * vv - math.fsum(v) * uv) / determinant
    beta = (math.fsum(v) * uu - math.fsum(u) * uv) / determinant
    return alpha, beta / largest
