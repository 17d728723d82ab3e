"""What can go wrong in a run."""


class SamplingError(RuntimeError):
    """A run that could not go on; everything sampled so far is kept.

    Attributes
    ----------
    run : pdmp.Run
        The run up to the failure.
    chain, event, time, position
        Where it failed: number of the chain, events so far, process time, and the position x there.
    """

    def __init__(self, message, *, run=None, chain=None, event=None, time=None, position=None):
        super().__init__(message)
        self.run, self.chain, self.event, self.time, self.position = run, chain, event, time, position
