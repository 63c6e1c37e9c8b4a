"""is what this check compares with"""

from utils.checks.lab07.timelines import STORIES


def straggler(timeline):
    return next(story.wanted for story in STORIES if story.timeline() == timeline)
