"""Networks whose per-example gradients are clipped at the price of ordinary backpropagation.

Layers map one example, so that no record sees another; book-keeping finds norms and
clipped sums of per-example gradients in one backward pass (ERRATA S5). Poisson batches,
clipping rules, schedules and the generator of noise are here as well; the mechanisms
that train with them are in `discreet.mechanisms`.
"""

from discreet.neural.batches import PoissonBatches
from discreet.neural.clipping import Automatic, Clipping, Flat, Unclipped
from discreet.neural.layers import BatchNorm, Conv, Dense, GroupNorm, Layer, LayerNorm, VariationalDense
from discreet.neural.network import Book, Network
from discreet.neural.plain_layers import (
    AveragePool,
    Dropout,
    Flatten,
    Gelu,
    MaxPool,
    Relu,
    Reshape,
    Tanh,
)
from discreet.neural.schedules import Cosine, Geometric, Polynomial, Schedule, Steady
from discreet.neural.sites import Site, site

__all__ = [
    "Automatic",
    "AveragePool",
    "BatchNorm",
    "Book",
    "Clipping",
    "Conv",
    "Cosine",
    "Dense",
    "Dropout",
    "Flat",
    "Flatten",
    "Gelu",
    "Geometric",
    "GroupNorm",
    "Layer",
    "LayerNorm",
    "MaxPool",
    "Network",
    "PoissonBatches",
    "Polynomial",
    "Relu",
    "Reshape",
    "Schedule",
    "Site",
    "Steady",
    "Tanh",
    "Unclipped",
    "VariationalDense",
    "site",
]
