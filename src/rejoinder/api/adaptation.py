"""Adapts any encoder to the STS Benchmark in one call."""

from contextlib import ExitStack
from pathlib import Path

from rejoinder.api.evaluation import load_encoder, places_of
from rejoinder.datasets.sts import read_stsb
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim_output
from rejoinder.models.adaptation.adapted import Adapted
from rejoinder.models.adaptation.fitting import FitSettings, fit_adaptation
from rejoinder.models.adaptation.linear import FILE
from rejoinder.protocols import Encodes


def adapt(
    encoder: Encodes | str | Path,
    sts: str | Path,
    *,
    out: str | Path | None = None,
    form: str | None = None,
    settings: FitSettings | None = None,
    overwrite: bool = False,
) -> SentenceEncoder | Adapted:
    """Fits u* = W u on the training pairs of the STS Benchmark. Its dev pairs select W.

    Args:
        encoder: anything with `encode(list of strings)`, or a name that `load_encoder` opens,
            such as a model folder.
        sts: the folder of sts-train.csv and sts-dev.csv, or a folder of data sets.
        out: a folder to write. It gets the adapted model if the encoder is a `SentenceEncoder`,
            else `adaptation.safetensors` alone. None means that nothing is written.
        form: `official` or `senteval`, the form of the STS files. None means either.
        settings: how W is fitted. None means the defaults of `FitSettings`.
        overwrite: replace what `out` holds.

    Returns:
        The adapted encoder: a `SentenceEncoder` if `encoder` is one. `describe()["adaptation"]`
        has the correlations on dev before and after.

    Raises:
        InputError: the STS files or the encoder can't be used, or `out` is not empty.
        ModelError: the encoder can't be adapted, or there is no model of that name.
        BusyError: another command is writing `out`.
        StorageError: `out` can't be written.
    """
    path = None if out is None else Path(out)
    with ExitStack() as stack:
        if path is not None:
            inputs = [*places_of(encoder), sts]
            stack.enter_context(claim_output(path, overwrite=overwrite, inputs=inputs))
        train, dev = (read_stsb(Path(sts), split, form) for split in ("train", "dev"))
        opened = load_encoder(encoder) if isinstance(encoder, str | Path) else encoder
        adaptation = fit_adaptation(opened, train, dev, settings)
        if isinstance(opened, SentenceEncoder):
            model = opened.with_adaptation(adaptation)
            if path is not None:
                model.save(path, overwrite=overwrite)
            return model
        if path is not None:
            with new_folder(path, overwrite=overwrite) as folder:
                adaptation.write(folder / FILE)
        return Adapted(opened, adaptation)
