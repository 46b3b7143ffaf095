"""`recall_1_t2i`: how often the image of a caption is ranked first, in percent.

The prediction of an item is the number of images before the right one.
"""

from rejoinder.evaluation.items import Items
from rejoinder.evaluation.metrics.base import Metric, compare_correct


def _recompute(items: Items) -> dict[str, float]:
    return {f"recall_{n}_t2i": 100 * float((items.predictions < n).mean()) for n in (1, 5, 10)}


METRICS = (
    Metric(
        name="recall_1_t2i",
        recompute=_recompute,
        errors=lambda items: items.predictions,
        test=lambda first, second, seed, _draws: compare_correct(
            first.predictions < 1, second.predictions < 1, seed, percent=True
        ),
        percent=True,
        not_percent=("median_rank_*",),
    ),
)
