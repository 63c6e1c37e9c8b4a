"""What the commands and loaders of this room raise about a notebook that they cannot use."""


class NotebookError(ValueError):
    """A notebook cannot be used as it is. The message is one sentence: where, what, and what to do."""
