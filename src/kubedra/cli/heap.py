"""The garbage collector of processes that run for long.

Python looks for cycles after every 700 new containers and, from time to time, through everything that lives. A server
that keeps thousands of objects spends a fifth of its time on that, in pauses that grow with its memory, and hardly
anything it throws away is in a cycle. So it looks seldom, and never again at what was there when it was ready.
"""

from __future__ import annotations

import gc

# New containers between looks at the young ones, then looks between those at the middle-aged and at the old ones. Old
# ones are looked at only once they have grown by a quarter, whatever stands here.
THRESHOLDS = (20_000, 20, 20)


def collect_seldom() -> None:
    """Look for cycles less often. To be called before the work begins."""
    gc.set_threshold(*THRESHOLDS)


def keep_what_is_there() -> None:
    """Take what lives now out of every later look: modules, caches, the objects of a start."""
    gc.collect()
    gc.freeze()
