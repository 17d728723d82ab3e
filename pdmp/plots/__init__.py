"""Pictures of runs and of comparisons, with matplotlib.

Each function takes where to draw, `ax` (or `axes`, a panel for each coordinate), and returns it; without, it makes a
figure of pyplot's, which notebooks and ``pyplot.show()`` show. Coordinates have the model's names, and may be given by
them. Of many coordinates a few telling ones are shown, and the picture says which. Colours can be told apart without
red or green cones, and events by their markers too.

========================  ===========================================================================================
`overview`                what one looks at first, also ``run.plot()``
`trajectory`              a path in two coordinates, with its events by kind
`trace`                   a path against time, as the flow moves it between events
`rate_and_bound`          how events are thinned: rate, bound and proposals along a piece of path
`event_rates`             events per unit of time, by kind and chain
`marginals`, `pairs`      the posterior, over a reference
`inclusion`               probabilities of being selected, with Monte Carlo errors
`ranks`                   whether chains agree
`autocorrelation`         along the path, with effective draws
`rungs`                   how replicas pass the ladder of a tempered run
`error_by_cost`           of a comparison, or of a run with a reference
`compare`, `tuning`       a comparison of samplers, a search for settings
`reliability`             of predicted probabilities
`report`                  a comparison as a web page, one file
========================  ===========================================================================================
"""

from pdmp.plots.comparisons import compare, error_by_cost, reliability, tuning
from pdmp.plots.convergence import autocorrelation, event_rates, overview, ranks
from pdmp.plots.densities import inclusion, marginals, pairs
from pdmp.plots.pages import report
from pdmp.plots.paths import trace, trajectory
from pdmp.plots.proposals import rate_and_bound
from pdmp.plots.tempering import rungs

__all__ = [
    "autocorrelation",
    "compare",
    "error_by_cost",
    "event_rates",
    "inclusion",
    "marginals",
    "overview",
    "pairs",
    "ranks",
    "rate_and_bound",
    "reliability",
    "report",
    "rungs",
    "trace",
    "trajectory",
    "tuning",
]
