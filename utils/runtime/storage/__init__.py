"""Storage: shards that loaders read, a store that gives only so many bytes a second, checkpoints that go back to it."""
