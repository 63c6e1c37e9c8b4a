"""Jobs among others: who gets the GPUs, what happens when a rank dies, and how a job goes on from a checkpoint."""
