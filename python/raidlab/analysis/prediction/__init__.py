"""What was measured on an array beside what its twin gives in the simulator: agreed, slower, faster, and where.

- ``compare``: load by load, with a verdict by the error that the device's model states of itself
- ``causes``: what member counters, facts and checks show of why they differ; one function a cause
- ``members``: what each member of an array did, by the kernel's counters or by those of modelled disks

Invariant: nothing is measured here, and no cause is named that nothing shows.
"""

from raidlab.analysis.prediction.causes import Cause
from raidlab.analysis.prediction.compare import (
    AGREES,
    FASTER,
    SLOWER,
    UNDECIDED,
    PredictedLoad,
    Prediction,
    predictions_of,
)

__all__ = ["AGREES", "FASTER", "SLOWER", "UNDECIDED", "Cause", "PredictedLoad", "Prediction", "predictions_of"]
