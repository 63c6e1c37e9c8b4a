"""What the commands and loaders of this room raise and say about a notebook that they cannot use."""

LONGEST = 600  # characters of a message; what a learner's code raises may have any length


class NotebookError(ValueError):
    """A notebook cannot be used as it is. The message is one sentence: where, what, and what to do."""


def in_a_line(text: str) -> str:
    """A learner's text as one line that steers no terminal and is not too long: it cannot pass for lines of ours."""
    line = "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in " ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} … ({len(line)} characters)"
