"""Fixtures that tests of several packages share."""

import gc
import os
import signal
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from runs import Listener, write_labelled
from s3_server import s3_server

if TYPE_CHECKING:
    from shared_spark import SharedSpark

ROOT = Path(__file__).resolve().parent.parent

# Tensors of tests are tiny: waking other threads for them costs more than it saves, and the workers
# of pytest-xdist share the cores. Torch and BLAS read the variables when they are imported, and
# commands that tests start inherit them. Tests of threads set their number themselves.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Some commands run with a limit on the size of files, at which Python would cut compiled modules
# and keep them.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# Millions of objects are made while tests are collected, and stay. Looking for garbage among them
# again and again took a third of that time.
gc.disable()

# a busy machine, or the first import of a library, makes an example slow
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

# a job in the background ignores SIGINT, and so would everything that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)


def _data() -> Path:
    return Path(os.environ.get("REJOINDER_DATA", ROOT.parent / "shared" / "data"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--third N` runs a third of the tests: the slow ones take too long for one run of CI."""
    parser.addoption("--third", type=int, choices=(0, 1, 2), help="run only a third of the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a third of the tests if asked for; skip those of the real data where it is absent.

    With several processes, one has the tests of a file, or of a group that shares what takes long
    to start. Such groups go first: the last tests should be short ones.
    """
    groups, files = [], []
    for item in items:
        if item.get_closest_marker("xdist_group"):
            groups.append(item)
        else:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
            files.append(item)
    items[:] = [*groups, *files]
    third = config.getoption("third")
    if third is not None:
        thirds: tuple[list[pytest.Item], ...] = ([], [], [])
        for item in items:
            thirds[crc32(item.nodeid.encode()) % 3].append(item)
        items[:] = thirds[third]
        config.hook.pytest_deselected(items=[*thirds[third - 1], *thirds[third - 2]])
    if _data().is_dir():
        return
    reason = f"the real data is not here: {_data()} (set REJOINDER_DATA to its folder)"
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage again, but not among what the collection of tests has made."""
    # pytest-xdist writes the groups into ids, which pytest 9.2 ignored: Spark started twice, and
    # the fixtures of each file
    grouped = getattr(session.config.option, "loadgroup", False)
    if grouped and not all("@" in item.nodeid for item in session.items):
        raise pytest.UsageError("this pytest-xdist can't group tests under this pytest")
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Give modules back to the collector: extensions complain of what Python does not destroy."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def certificates() -> Iterator[None]:
    """The certificates of this machine, read once and not for each client of HTTP, in 40 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real data; use it in tests marked `shared_data`."""
    return _data()


@pytest.fixture(scope="session")
def small_dump() -> Path:
    """The made-up dump that comes with the project."""
    return ROOT / "examples" / "small.jsonl"


@pytest.fixture(scope="session")
def small_pairs(small_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its pairs, split 80/10/10."""
    from rejoinder.corpus.extract import extract

    out = tmp_path_factory.mktemp("small") / "pairs"
    extract(small_dump, out, split=(80.0, 10.0, 10.0))
    return out


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small labelled files."""
    return write_labelled(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def few_resamples() -> Iterator[None]:
    """Intervals from a tenth of the resamples, which take most of the time of a score."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rejoinder.evaluation.intervals.RESAMPLES", 200)
        yield


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the interface of S3. It has a bucket `tests`."""
    from pyarrow.fs import FileSystem

    with s3_server(tmp_path_factory.mktemp("s3") / "log") as address:
        FileSystem.from_uri("s3://tests?allow_bucket_creation=true")[0].create_dir("tests")
        yield address


@pytest.fixture(scope="session")
def shared_spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SharedSpark"]:
    """What `spark` and `no_spark` open and close."""
    from shared_spark import SharedSpark

    with suppress(pytest.skip.Exception):  # Spark's workers see the environment of the server
        request.getfixturevalue("s3")
    shared = SharedSpark(tmp_path_factory.mktemp("spark"))
    yield shared
    shared.close()


@pytest.fixture
def spark(shared_spark: "SharedSpark") -> None:
    """A session of Spark in this process. Tests with it are in the group `spark`."""
    shared_spark.open()


@pytest.fixture
def no_spark(shared_spark: "SharedSpark") -> None:
    """No session of Spark in this process. Tests with it are in the group `spark`."""
    shared_spark.close()


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that replaces the package's, in which two tiny models ship."""
    from rejoinder.models.folder import write_model
    from tiny_models import dan_model

    folder = tmp_path / "shipped"
    for name, width in (("rejoinder-base", 6), ("rejoinder-small", 4)):
        write_model(folder / name, replace(dan_model(width=width), name=name))
    monkeypatch.setattr("rejoinder.models.find.FOLDER", folder)
    return folder


@pytest.fixture(scope="session")
def train(small_pairs: Path, labelled: Path) -> Callable[..., tuple[Any, Listener]]:
    """A function that begins a run at `out`, or resumes it, on one thread of the CPU."""
    from rejoinder.corpus.writer import open_pairs
    from rejoinder.training.config.loading import parse_config
    from rejoinder.training.data.preparation import Data
    from rejoinder.training.loop.loop import Limits
    from rejoinder.training.loop.run import begin, go_on

    def call(
        tree: Mapping[str, Any],
        out: Path,
        *,
        resume: bool = False,
        stop_at: int | None = None,
        seconds: float | None = None,
        evaluate: Callable[[Any], Mapping[str, float]] | None = None,
        with_pairs: bool = True,
        pairs: Path = small_pairs,
    ) -> tuple[Any, Listener]:
        source = Data(open_pairs(pairs) if with_pairs else None, labelled)
        if not resume:
            config = parse_config(tree, "test")
            begin(config, source, out, overwrite=True, progress=lambda _done, _all: None)
        listener = Listener()
        result = go_on(
            out,
            source,
            Limits(stop_at, seconds),
            device="cpu",
            threads=1,
            evaluate=evaluate or (lambda encoder: {"norm": float(encoder.encode(["hi"]).sum())}),
            reporter=listener,
        )
        return result, listener

    return call


@pytest.fixture
def multilingual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Installs `rejoinder-multi`, as pip would."""
    facts = tmp_path / "site/any-0.1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: any\nVersion: 0.1.0\n")
    names = "[rejoinder.models]\nrejoinder-multi = rejoinder_multi\n"
    (facts / "entry_points.txt").write_text(names)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(ROOT / "models/rejoinder-multi/src")
