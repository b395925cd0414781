"""Gymnasium environments of the scheduling studies: packet routing, coflow scheduling and placement of jobs.

>>> import gymnasium, iswitch.studies
>>> env = gymnasium.make("iswitch/Routing-v0", switches=4, load=0.8)

An environment runs the simulator of its study and stops at each decision, which is a choice among candidates: links,
coflows or GPUs. The observation has a row of features for each candidate, and the action is the index of a row. The
simulator also runs the rules of the study, for comparison and for imitation. Importing this module registers the
environments `iswitch/Routing-v0`, `iswitch/Coflow-v0` and `iswitch/Placement-v0`; it requires gymnasium and NumPy.
"""

import gymnasium

from iswitch.studies._coflow import CoflowEnv
from iswitch.studies._environment import StudyEnv
from iswitch.studies._placement import PlacementEnv
from iswitch.studies._routing import RoutingEnv

__all__ = ["CoflowEnv", "PlacementEnv", "RoutingEnv", "StudyEnv"]

for _name, _class in (("Routing", RoutingEnv), ("Coflow", CoflowEnv), ("Placement", PlacementEnv)):
    gymnasium.register(f"iswitch/{_name}-v0", entry_point=f"{__name__}:{_class.__name__}")
