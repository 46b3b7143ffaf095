"""The data of a config with their licences, before anything is trained."""

from rejoinder.corpus.shards import Pairs
from rejoinder.datasets.licences import (
    NOT_STATED,
    DataRow,
    licence_of_file,
    licence_of_source,
)
from rejoinder.models.config import read_config
from rejoinder.models.find import find_model
from rejoinder.models.terms import training_rows
from rejoinder.training.config.settings import RunConfig
from rejoinder.training.data.preparation import select_sources


def data_rows(config: RunConfig, pairs: Pairs | None = None) -> list[DataRow]:
    """Returns the sources of pairs and the labelled files that a config trains on.

    Without `pairs`, only the sources that `training.sources` names are known, and judged by their
    names alone; a config that names none has one row for all of them, whose licence is not stated.

    Raises:
        InputError: the config names a source that is not among the pairs, or leaves none.
        ModelError: the model that training starts from is not there.
    """
    rows = _sources(config, pairs) if config.reads_pairs else []
    files = dict.fromkeys(file.path for task in config.mixture for file in task.data)
    rows += [DataRow("file", path, licence_of_file(path)) for path in files]
    if config.training.init_from:
        initial = read_config(find_model(config.training.init_from))
        rows += training_rows(initial.get("training") or {}, initial.get("adaptation"))
    return rows


def _sources(config: RunConfig, pairs: Pairs | None) -> list[DataRow]:
    if pairs is not None:
        inputs = [str(file["file"]) for file in pairs.manifest.inputs]
        chosen = select_sources(pairs, config.training).chosen
        return [
            DataRow("source", name, licence_of_source(name, inputs), count)
            for name, count in chosen.items()
            if count
        ]
    named = config.training.sources
    if not named:
        return [DataRow("source", "the pairs", NOT_STATED)]
    return [DataRow("source", name, licence_of_source(name)) for name in named]
