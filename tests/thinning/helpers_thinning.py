"""What `test_thinning.py` and other test modules share."""


class Draws:
    """A random stream that is known in advance."""

    def __init__(self, *exponentials):
        self.exponentials = list(exponentials)

    def standard_exponential(self):
        return self.exponentials.pop(0)
