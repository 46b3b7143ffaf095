"""One module a protocol; the names by which tasks are asked for."""

from collections.abc import Sequence

from rejoinder.errors import InputError, nearest
from rejoinder.evaluation.tasks import (
    classification,
    cqa,
    inference,
    regression,
    response,
    retrieval,
    similarity,
)
from rejoinder.evaluation.tasks.base import Family

FAMILIES: tuple[Family, ...] = (
    *response.FAMILIES,
    *similarity.FAMILIES,
    *regression.FAMILIES,
    *classification.FAMILIES,
    *inference.FAMILIES,
    *cqa.FAMILIES,
    *retrieval.FAMILIES,
)

_STS = tuple(f"sts{year}/cosine" for year in (12, 13, 14, 15, 16))
_CLASSES = ("mr", "cr", "subj", "mpqa", "sst2", "sst5", "trec", "mrpc", "sick-e", "snli")
GROUPS: dict[str, tuple[str, ...]] = {
    "response": ("response/p@n",),
    "stsb": ("stsb/angular", "stsb/cosine"),
    "stsb-unrepeated": ("stsb-unrepeated/angular", "stsb-unrepeated/cosine"),
    "sts": (*_STS, "sts17/cosine", "stsb/cosine"),
    "senteval": (
        *(f"{name}/senteval" for name in _CLASSES),
        "sick-r/senteval-regression",
        "stsb/senteval-regression",
        "coco/senteval",
        *_STS,
    ),
    "probing": classification.PROBING_IDS,
    "cqa": ("cqa-b/2016", "cqa-b/2017"),
    **{
        name.split("/")[0]: (name,)
        for family in FAMILIES
        for name in family.ids
        if not name.startswith(("stsb", "response", "cqa"))
    },
    "snli": ("snli/head", "snli/senteval"),
}
"""What a person asks for, and the task ids that it stands for."""
IDS = tuple(name for family in FAMILIES for name in family.ids)


def resolve(names: Sequence[str]) -> list[str]:
    """Task ids of groups and ids, each once, in the order asked for.

    >>> resolve(["stsb", "stsb/cosine"])
    ['stsb/angular', 'stsb/cosine']

    Raises:
        InputError: a name is unknown.
    """
    found: list[str] = []
    for name in names:
        if name not in GROUPS and name not in IDS:
            raise InputError(f"--tasks {name!r}: {nearest(name, [*GROUPS, *IDS])}.")
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))


def families_of(ids: Sequence[str]) -> list[tuple[Family, list[str]]]:
    """The families behind ids, in the order asked for, each with those of its ids."""
    chosen: dict[int, list[str]] = {}
    for name in ids:
        place = next(place for place, family in enumerate(FAMILIES) if name in family.ids)
        chosen.setdefault(place, []).append(name)
    return [(FAMILIES[place], names) for place, names in chosen.items()]
