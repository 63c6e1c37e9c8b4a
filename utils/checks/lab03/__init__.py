"""Lab 03, ring cost and bus bandwidth: its exercises, in the order of the notebook."""

from utils.checks.exercise import Exercise
from utils.checks.lab03 import averaging, bandwidth, choosing, fitting, pipelining, rings

EXERCISES = (
    Exercise(
        "03.reduce_scatter_ring",
        "the first half of a ring: every rank ends with one part of the sum",
        difficulty=3,
        minutes=15,
        parameters=("tensor",),
        hints=(
            "Follow one part on paper. It starts at one rank, goes to the neighbour, which adds its own numbers to it, "
            "and so on: after N - 1 steps it has been everywhere. All parts travel at the same time.",
            "Let `parts = tensor.tensor_split(N)`. In each step a rank sends the part that it has just added to, and "
            "receives the one before that, into a tensor of its own, to add it. Begin the send with `dist.isend`, "
            "receive with `dist.recv`, then wait for the send.",
            "In step s = 0 … N - 2 rank r sends part (r - s - 1) mod N to rank r + 1 and receives part (r - s - 2) mod "
            "N from rank r - 1. The last part that it receives is part r, which is then complete.",
        ),
        verify=rings.verify_reduce_scatter,
    ),
    Exercise(
        "03.all_gather_ring",
        "the second half: every part reaches every rank",
        difficulty=2,
        minutes=8,
        parameters=("tensor", "part"),
        hints=(
            "The same walk around the ring, without adding: what arrives is kept, and handed on in the next step.",
            "First copy this rank's own part into its place, `parts[rank].copy_(part)`. Then, N - 1 times, send the "
            "part that came last and receive the next one straight into its place.",
            "In step s rank r sends part (r - s) mod N to rank r + 1 and receives part (r - s - 1) mod N from rank "
            "r - 1.",
        ),
        verify=rings.verify_all_gather,
    ),
    Exercise(
        "03.all_reduce_ring",
        "both halves: the sum on every rank",
        difficulty=1,
        minutes=6,
        parameters=("tensor",),
        hints=(
            "After the first half every rank has one finished part of the sum. What brings all finished parts to all?",
            "`reduce_scatter_ring(tensor)` returns this rank's part of the sum, and `all_gather_ring(tensor, part)` "
            "fills a tensor with everybody's parts.",
            "Two lines: keep what `reduce_scatter_ring(tensor)` returns, and hand it to `all_gather_ring` with the "
            "same tensor.",
        ),
        verify=rings.verify_all_reduce,
    ),
    Exercise(
        "03.average_ring",
        "the mean in half precision, where the sum would be infinite",
        difficulty=2,
        minutes=6,
        parameters=("tensor",),
        hints=(
            "float16 ends at 65504. Four numbers near 50000 have a mean that fits and a sum that does not. When may "
            "one divide?",
            "The mean is the sum of the numbers divided by N, and also the sum of each number divided by N. In the "
            "second order nothing is ever larger than the largest number.",
            "Two lines: every rank divides its own tensor by N, in place (`/=`), and then your ring of the last "
            "exercise adds up what is left.",
        ),
        verify=averaging.verify,
    ),
    Exercise(
        "03.all_reduce_pipelined",
        "a ring whose parts travel in pieces",
        difficulty=4,
        minutes=15,
        parameters=("tensor", "pieces"),
        hints=(
            "In your ring a rank waits for a whole part, adds it, and sends it on; meanwhile its link is idle. In "
            "pieces, the first can leave again while the second is still arriving.",
            "Per step: begin all receives with `dist.irecv`, one for each piece. Then for each piece: wait for it, add "
            "it, and send it on with `dist.isend` at once. What a rank sends in step s + 1 is what it received in step "
            "s, so a step contains no other send.",
            "Before the loop send the pieces of part r. Then 2(N - 1) steps, of which step s receives part (r - s - 1) "
            "mod N: in the first N - 1 into new tensors, to be added, in the others into its place. Nothing is sent on "
            "in the last step. Keep what `isend` returns, and wait for all of it at the end. A small function that "
            "begins the receives of a step makes it easy to call it one step ahead.",
        ),
        verify=pipelining.verify,
    ),
    Exercise(
        "03.bandwidths",
        "algbw and busbw, as nccl-tests prints them",
        difficulty=1,
        minutes=6,
        parameters=("kind", "total_bytes", "world_size", "seconds"),
        hints=(
            "algbw says how fast the caller's bytes were dealt with: S / t. busbw says how fast each rank's link was: "
            "the bytes that a rank sends, over the same time.",
            "busbw is algbw times a factor, the bytes a rank sends per byte of S: 2(N - 1)/N for an all-reduce, "
            "(N - 1)/N for an all-gather or reduce-scatter, 1 for a broadcast.",
            "`algbw = total_bytes / seconds / 1e9`, then `return algbw, algbw * factor`, the factor from a dict by "
            "`kind`. GB/s are 10**9 bytes per second.",
        ),
        verify=bandwidth.verify,
    ),
    Exercise(
        "03.fit_alpha_beta",
        "latency and bandwidth from measured times",
        difficulty=3,
        minutes=9,
        parameters=("points",),
        hints=(
            "t = alpha + beta · b is a line. But sizes span a factor of a million: an error of 5% in the largest "
            "time is larger than alpha itself, and a plain fit forgets the small sizes.",
            "Divide each equation by its time: 1 = alpha · (1/t) + beta · (b/t). Its errors are relative, and all "
            "sizes count alike. It is still linear in alpha and beta.",
            "`torch.linalg.lstsq(columns, torch.ones(n, 1, dtype=torch.float64)).solution` solves it, where the "
            "columns are 1/t and b/t in float64; or solve the two normal equations by hand.",
        ),
        verify=fitting.verify,
    ),
    Exercise(
        "03.ring_or_tree",
        "which algorithm for which size",
        difficulty=2,
        minutes=10,
        parameters=("total_bytes", "world_size", "alpha", "beta"),
        hints=(
            "Every message costs alpha, every byte costs beta. How many messages, one after the other, has the "
            "ring? How many rounds has the tree, and how many bytes in each?",
            "Ring: 2(N - 1) steps, in each a part of S/N bytes. Tree: log2 N rounds up and as many down, rounded up to "
            "whole ones, in each the whole S bytes.",
            "Ring: 2(N - 1)(alpha + beta S/N). Tree: 2 ceil(log2 N)(alpha + beta S). Return the name of the smaller; "
            "`(N - 1).bit_length()` is ceil(log2 N).",
        ),
        verify=choosing.verify,
    ),
)
