"""26214400, which is none of the sizes"""


def best_bucket_size(layers, world_size, link, sizes):
    return 25 * 2**20
