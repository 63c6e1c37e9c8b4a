"""your function returns a NoneType; it is to return one of the sizes"""


def best_bucket_size(layers, world_size, link, sizes):
    pass
