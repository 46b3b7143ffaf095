"""SentEval's interface: scripts for SentEval run after one changed import line.

>>> from rejoinder.evaluation import senteval
>>> engine = senteval.engine.SE({"task_path": "data"}, lambda params, batch: None)
>>> engine.params.seed
1111
"""

from rejoinder.evaluation.senteval import engine, utils

__all__ = ["engine", "utils"]
