"""`Scorer`: a scorer with the model that it was fitted with, as users open it."""

from pathlib import Path

from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import shipped_model
from rejoinder.scoring.scorer import PairScorer, shipped_scorer


class Scorer(PairScorer):
    """Scores how alike two texts are, by their embeddings and what the words say one by one.

    >>> scorer = Scorer()
    >>> scorer.score("A man is playing a guitar.", "A man plays the guitar.") > 4
    True
    >>> [pair] = scorer.explain("A man plays a guitar.", "A man plays no guitar.")
    >>> pair.families()["negation"] < 0
    True

    It is fitted on pairs that people scored (`rejoinder.fit_scorer`), which a cosine is not. The
    order of the two texts does not matter.
    """

    def __init__(
        self, scorer: str | Path | None = None, encoder: SentenceEncoder | None = None, *,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        """Opens a scorer.

        Args:
            scorer: A folder that `rejoinder fit-scorer` wrote. Default: the one that comes with the
                package.
            encoder: The model that the scorer was fitted with. Default: the one of that name that
                comes with the package.
            threads: Number of CPU cores, by default all that the process may use.

        Raises:
            ModelError: there is no such scorer, it is damaged, or it was fitted with another model.
        """
        folder = shipped_scorer() if scorer is None else Path(scorer)
        super().__init__(
            folder, lambda name: encoder or SentenceEncoder(shipped_model(name), threads=1), threads
        )
