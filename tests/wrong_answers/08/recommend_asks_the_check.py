"""is what this check compares with"""

from utils.checks.lab08.recommending import Question, best


def recommend(job, memory):
    return best(Question(job, memory))
