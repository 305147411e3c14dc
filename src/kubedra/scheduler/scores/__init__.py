"""Which of the nodes that fit is best? One reason a file; each gives every node 0 to 100, weighed as upstream does.

Ties are broken by the order of the walk over the nodes (see `candidates`), never at random: the same cluster and the
same pods in the same order give the same placement.

Not scored: image locality (sizes of images say nothing to our runtimes) and upstream's default spreading of the pods
of one controller.

Upstream: pkg/scheduler/framework/plugins, weights in apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

MAX_SCORE = 100
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
}


def normalize(scores: dict[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Stretch raw scores so that the highest becomes 100; reversed, so that 0 does."""
    highest = max(scores.values(), default=0)
    if highest == 0:
        return dict.fromkeys(scores, MAX_SCORE) if reverse else scores
    stretched = {name: MAX_SCORE * value // highest for name, value in scores.items()}
    return {name: MAX_SCORE - value for name, value in stretched.items()} if reverse else stretched
