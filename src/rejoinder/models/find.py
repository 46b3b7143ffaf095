"""Finds the folder of a model given by name, by path or by address.

Names are of installed models, from this package or from others.

Archives at https addresses are downloaded once, checked, and cached by SHA-256.
"""

import os
import re
from collections import ChainMap
from collections.abc import Callable
from importlib.resources import files
from os import PathLike
from pathlib import Path
from reprlib import repr as short
from threading import Lock
from urllib.parse import urlsplit

from rejoinder.errors import BusyError, InputError, ModelError, StorageError, require
from rejoinder.io.files.atomic import new_folder
from rejoinder.io.files.claims import claim
from rejoinder.io.files.storage import resolved
from rejoinder.models.config import FILE

Progress = Callable[[str, int, int | None], None]
"""Called with the address, the number of bytes received, and the total number if known."""


def find_model(model: object, sha256: str | None = None, progress: Progress | None = None) -> Path:
    """Returns the folder of a model given by name, by path or by address.

    A string without a separator is the name of an installed model, or else a folder. A `Path`, or a
    string with a separator, is a folder. A model at an address needs the `sha256` of its archive;
    `progress` is called during its download (`cached_model`).

    Raises:
        InputError: the argument is neither a string nor a path, or `sha256` is given for a model
            that is not at an address; also what `cached_model` raises.
        ModelError: there is neither a model nor a folder with that name, or there are both.
    """
    if is_address(model):
        return cached_model(str(model), sha256, progress)
    if sha256 is not None:
        raise InputError(
            f"sha256 is for a model at an https address; {short(model)} is a name or a folder."
        )
    if not isinstance(model, str | PathLike):
        raise InputError(
            f"a model is given by name, folder or https address, str or Path; got {short(model)}."
        )
    try:
        path = Path(model)
    except TypeError:  # a path of bytes
        raise InputError(f"the path of a model folder is text; got {model!r}.") from None
    if model != path.name:
        return path
    try:
        shipped = shipped_model(path.name)
    except ModelError:
        if os.path.exists(path):  # noqa: PTH110 -- no error for a name that is too long
            return path
        raise
    if os.path.exists(path / FILE):  # noqa: PTH110 -- nor for a folder that can't be read
        raise ModelError(
            f"{path.name!r} is a folder here, ./{path.name}, and an installed model, {shipped}."
        )
    return shipped


DEFAULT = "rejoinder-base"
"""Name of the default model."""
FOLDER = Path(str(files("rejoinder").joinpath("data", "models")))
"""The folder of the shipped models. A build without models does not have it."""
GROUP = "rejoinder.models"
"""Group of entry points of other packages: each names a package that contains model folders."""


def shipped_models() -> dict[str, Path]:
    """Returns the folders of the installed models by name, in alphabetical order.

    A model of this package takes precedence over a model with the same name in another.
    """
    from importlib.metadata import entry_points  # takes 40 ms, rarely needed

    packages = sorted({point.value for point in entry_points(group=GROUP)})
    others = [_models_in(Path(str(files(package)))) for package in packages]
    return dict(sorted(ChainMap(_models_in(FOLDER), *others).items()))


def _models_in(folder: Path) -> dict[str, Path]:
    return {config.parent.name: config.parent for config in folder.glob(f"*/{FILE}")}


def shipped_model(name: str = DEFAULT) -> Path:
    """Returns the folder of an installed model.

    Raises:
        ModelError: no installed model has this name; the message lists the installed models.
    """
    found = _models_in(FOLDER)
    if name not in found:
        found = shipped_models()
    if name in found:
        return found[name]
    known = ", ".join(found)
    raise ModelError(
        f"no model named {short(name)} is installed (installed: {known or 'none'}). Give the path "
        "of an existing model folder, such as RUN/model."
    )


CACHE = "REJOINDER_CACHE"
"""The environment variable that names the folder of the cache."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
"""The beginning of an address; a single letter would be a Windows drive."""
_SHA256 = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POLL = 0.2
"""Seconds between checks for a model that another process downloads."""
_PATIENCE = 600.0
"""Seconds to wait for that process."""

_LOCK = Lock()
"""Makes threads of this process take turns; the claim on the folder keeps other processes out."""


def is_address(model: object) -> bool:
    """Whether a model is given by address, not by name or folder.

    >>> is_address("https://example.org/model.zip"), is_address("runs/dan/model")
    (True, False)
    """
    return isinstance(model, str) and bool(_ADDRESS.match(model))


def cache_folder() -> Path:
    """Returns the cache folder: `REJOINDER_CACHE`, or a folder in the user's cache.

    Raises:
        MissingExtraError: platformdirs is not installed.
    """
    named = os.environ.get(CACHE)
    if named:
        return resolved(Path(named))
    require("data", "platformdirs")
    from platformdirs import user_cache_path

    return user_cache_path("rejoinder", appauthor=False)


def cached_model(address: str, sha256: str | None, progress: Progress | None = None) -> Path:
    """Returns the folder of the model in an archive, which is downloaded unless already cached.

    Args:
        address: https address of a zip, or of a tar in any compression, that contains one model
            folder or its files. http is allowed for this machine only.
        sha256: SHA-256 of the archive, in hexadecimal. It is the key of the cache: an archive is
            downloaded once, whatever addresses it has.
        progress: called during the download.

    Raises:
        InputError: the address or the SHA-256 is invalid, the address can't be reached or sends
            other bytes, or the archive is damaged, too large, or not an archive of a model.
        MissingExtraError: a package that downloads or unpacks is not installed.
        BusyError: another process has been downloading the model for ten minutes.
        StorageError: the cache can't be written.
    """
    folder = cache_folder() / "models" / _checked(sha256, address)
    if not folder.is_dir():
        try:
            _wait_and_fetch(address, folder, progress)
        except StorageError as error:
            raise StorageError(f"{error} {CACHE} names the folder of the cache.") from None
    return _model_in(folder, address)


def _checked(sha256: str | None, address: str) -> str:
    """Returns the SHA-256 in lower case, after checking it and the address."""
    try:
        parts = urlsplit(address)
        local = parts.hostname in _LOOPBACK
    except ValueError as error:
        raise InputError(f"{address} is not an address: {error}.") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise InputError(
            f"{address}: models are loaded by https, and by http from this machine only; give an "
            "https address, or a folder."
        )

    if sha256 is None:
        raise InputError(
            f"{address} needs the SHA-256 of its archive: `model_sha256`, in Python sha256=. "
            "Commands without that option take the folder that `rejoinder info` prints."
        )
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise InputError(f"sha256 is {sha256!r}; a SHA-256 has 64 hexadecimal digits.")
    return sha256.lower()


def _wait_and_fetch(address: str, folder: Path, progress: Progress | None) -> None:
    """Downloads and unpacks, or waits for the process that does."""
    require("data", "httpx", "tenacity")
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

    wait, stop = wait_fixed(_POLL), stop_after_delay(_PATIENCE)
    busy = retry_if_exception_type(BusyError)
    Retrying(retry=busy, wait=wait, stop=stop, reraise=True)(_fetch, address, folder, progress)


def _fetch(address: str, folder: Path, progress: Progress | None) -> None:
    from rejoinder.datasets.acquire.files import unpack
    from rejoinder.datasets.acquire.layout import download

    archive = folder.with_name(f"{folder.name}.archive")
    with _LOCK, claim(folder):
        if folder.is_dir():  # another process or thread was faster
            return
        download(
            address,
            archive,
            progress or (lambda _address, _done, _total: None),
            sha256=folder.name,
            advice="Or download the model some other way, and give its folder.",
        )
        try:
            with new_folder(folder) as new:
                unpack(archive, new)
                _model_in(new, address)
        finally:
            archive.unlink(missing_ok=True)


def _model_in(folder: Path, address: str) -> Path:
    """Returns the model folder in an archive: the archive's root or its only folder."""
    found = [config.parent for config in (*folder.glob(FILE), *folder.glob(f"*/{FILE}"))]
    if len(found) != 1:
        raise ModelError(
            f"{address} holds {len(found) or 'no'} model folders; it must hold exactly one."
        )
    return found[0]
