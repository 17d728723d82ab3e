"""Large models: matrix factorisations, independent components, a neural network."""

from pdmp.models.factorisations.bayesian_nn import BayesianNN
from pdmp.models.factorisations.bpmf import BPMF
from pdmp.models.factorisations.ica import ICA
from pdmp.models.factorisations.matrix_factorization import MatrixFactorization
from pdmp.models.factorisations.ppmf import PPMF

__all__ = ["BPMF", "ICA", "PPMF", "BayesianNN", "MatrixFactorization"]
