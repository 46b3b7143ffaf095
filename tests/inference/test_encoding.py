"""`encode_file`: streams, resumes to the byte, and refuses what is not the same run."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import InputError
from rejoinder.inference import encoding, sentence_stream
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.inference.encoding import encode_file, interrupted_sentences
from rejoinder.io.files.atomic import unfinished_folder
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model

LINES = ["How old are you?", "zebra", "good morning", "", "très bien"] * 20
CHUNK = 8
SUFFIXES = [".npy", ".parquet", ".jsonl"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, dan_model())
    return SentenceEncoder.load(folder)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(sentence_stream, "CHUNK", CHUNK)
    monkeypatch.setattr(encoding, "_SAVE_SECONDS", 0.0)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), "utf-8")
    return path


def interrupt(encoder, source, out, after, **options):
    """Encodes until `after` sentences are done, and is interrupted then."""

    def stop(done, _read, _size):
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_file(encoder, source, out, progress=stop, **options)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("after", [[1], [CHUNK + 1, 50], [100]])
def test_a_resumed_run_gives_the_bytes_of_an_uninterrupted_one(
    encoder, file, tmp_path, suffix, after
):
    whole, out = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    plain = encode_file(encoder, file, whole)
    for number in after:
        interrupt(encoder, file, out, number, resume=number != after[0])
        assert not out.exists()
        assert interrupted_sentences(out) == min(-(-number // CHUNK) * CHUNK, len(LINES))
    again = encode_file(encoder, file, out, resume=True)
    assert out.read_bytes() == whole.read_bytes()
    resumed = min(-(-after[-1] // CHUNK) * CHUNK, len(LINES))
    assert again == replace(plain, path=out, resumed=resumed, seconds=again.seconds)
    assert (plain.n, plain.dim, plain.unknown, plain.too_long) == (100, 5, 40, 0)
    assert not unfinished_folder(out).exists()


def test_the_rows_are_those_of_encode(encoder, file, tmp_path):
    for response in (False, True):
        out = tmp_path / f"{response}.npy"
        rejoinder.encode_file(encoder, str(file), str(out), response=response, batch_size=3)
        run = encoder.encode_response if response else encoder.encode
        np.testing.assert_allclose(np.load(out), run(LINES), atol=1e-6)


def test_strings_a_stream_of_them_and_a_compressed_file_give_the_same(encoder, file, tmp_path):
    packed = tmp_path / "lines.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    sources = [file, packed, LINES, (line for line in LINES), tuple(LINES)]
    for number, source in enumerate(sources):
        encode_file(encoder, source, tmp_path / f"{number}.jsonl")
    [content] = {(tmp_path / f"{number}.jsonl").read_bytes() for number in range(len(sources))}
    assert content.count(b"\n") == 100


def test_memory_does_not_grow_with_the_lines(encoder, tmp_path):
    """A stream is read no further than the chunk in work."""
    read = 0

    def lines():
        nonlocal read
        for _ in range(1_000):
            read += 1
            yield "hello"

    ahead = []
    encode_file(
        encoder,
        lines(),
        tmp_path / "e.npy",
        progress=lambda done, _read, _size: ahead.append(read - done),
    )
    assert max(ahead) == 0
    assert len(np.load(tmp_path / "e.npy")) == 1_000


def test_progress_is_told(encoder, file, tmp_path):
    told = []
    size = file.stat().st_size
    encode_file(encoder, file, tmp_path / "e.npy", progress=lambda *facts: told.append(facts))
    assert told[0] == (0, 0, size)
    assert [done for done, _, _ in told[1:]] == [*range(CHUNK, 100, CHUNK), 100]
    assert told[-1] == (100, size, size)
    told.clear()
    encode_file(encoder, LINES, tmp_path / "f.npy", progress=lambda *facts: told.append(facts))
    assert told[-1] == (100, 0, None)


def test_an_output_is_not_replaced_unless_told(encoder, file, tmp_path):
    out = tmp_path / "e.npy"
    encode_file(encoder, ["hello"], out)
    before = out.read_bytes()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"exists.*overwrite=True"):
            encode_file(encoder, file, out, resume=resume)
    interrupt(encoder, file, out, 20, overwrite=True)
    assert out.read_bytes() == before
    assert encode_file(encoder, file, out, resume=True, overwrite=True).resumed == 24
    assert len(np.load(out)) == 100


def test_an_interrupted_run_is_neither_lost_nor_mixed_up(encoder, file, tmp_path):
    out = tmp_path / "e.npy"
    interrupt(encoder, file, out, 20)
    with pytest.raises(InputError, match=r"24 sentences .*resume=True"):
        encode_file(encoder, file, out)
    assert interrupted_sentences(out) == 24
    assert encode_file(encoder, ["hello"], out, overwrite=True).n == 1
    assert not unfinished_folder(out).exists()


def test_nothing_to_resume_is_a_run_from_the_beginning(encoder, file, tmp_path):
    assert encode_file(encoder, file, tmp_path / "e.npy", resume=True).resumed == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"response": True}, "response was False, now it is True"),
        ({"batch_size": 7}, "batch_size was 4096, now it is 7"),
        ({"on_too_long": "split"}, "on_too_long was truncate, now it is split"),
    ],
)
def test_other_settings_are_not_resumed(encoder, file, tmp_path, options, said):
    out = tmp_path / "e.npy"
    interrupt(encoder, file, out, 20)
    with pytest.raises(InputError, match=f"begun with other settings: {said}"):
        encode_file(encoder, file, out, resume=True, **options)
    assert interrupted_sentences(out) == 24


def test_another_model_is_not_resumed(encoder, file, tmp_path):
    out = tmp_path / "e.npy"
    interrupt(encoder, file, out, 20)
    write_model(tmp_path / "other", dan_model(seed=1))
    other = SentenceEncoder.load(tmp_path / "other")
    with pytest.raises(InputError, match=r"model \(SHA-256 of its weights\) was [0-9a-f]{64}, now"):
        encode_file(other, file, out, resume=True)
    with pytest.raises(InputError, match=r"resume=True.*never saved"):
        encode_file(SentenceEncoder(dan_model()), file, out, resume=True)


@pytest.mark.parametrize(
    "changed",
    [
        ["another", *LINES[1:]],
        LINES[:10],
        [LINES[0] + LINES[1], *LINES[2:], "more"],
    ],
)
def test_another_input_is_not_resumed(encoder, file, tmp_path, changed):
    out = tmp_path / "e.npy"
    interrupt(encoder, file, out, 20)
    with pytest.raises(InputError, match="its first 24 lines have changed"):
        encode_file(encoder, changed, out, resume=True)
    assert interrupted_sentences(out) == 24


def test_lines_behind_those_that_are_done_may_change(encoder, file, tmp_path):
    out, whole = tmp_path / "e.npy", tmp_path / "whole.npy"
    interrupt(encoder, file, out, 20)
    changed = [*LINES[:24], "mended", "more"]
    encode_file(encoder, changed, out, resume=True)
    encode_file(encoder, changed, whole)
    assert out.read_bytes() == whole.read_bytes()


def test_an_input_that_grew_behind_a_last_chunk_that_was_not_whole_is_refused(
    encoder, file, tmp_path
):
    out = tmp_path / "e.npy"
    interrupt(encoder, file, out, 100)
    with pytest.raises(InputError, match="its first 100 lines have changed"):
        encode_file(encoder, [*LINES, "more"], out, resume=True)
    assert encode_file(encoder, LINES, out, resume=True).resumed == 100


def test_a_line_at_fault_is_named_and_what_was_done_is_kept(encoder, tmp_path):
    path, out = tmp_path / "lines.txt", tmp_path / "e.npy"
    path.write_bytes("".join(f"{line}\n" for line in LINES).encode() + b"tr\xe8s\n" * 20)
    with pytest.raises(InputError, match=r"lines\.txt.* 101 .*UTF-8.*0xe8"):
        encode_file(encoder, path, out)
    assert [each.name for each in tmp_path.iterdir()] == ["lines.txt"]  # all in the first block
    items = [*LINES, 7]
    with pytest.raises(InputError, match=r"text 100 is 7; .*string"):
        encode_file(encoder, items, out)
    assert interrupted_sentences(out) == 96


def test_halves_of_surrogate_pairs_are_replaced(encoder, tmp_path):
    encode_file(encoder, ["a\ud83d", "\ud83d\ude00"], tmp_path / "e.jsonl")
    content = (tmp_path / "e.jsonl").read_text("utf-8")
    assert '"a\ufffd"' in content
    assert '"\U0001f600"' in content


def test_lines_that_are_too_long(tmp_path):
    write_model(tmp_path / "model", bilstm_model())
    long = "cat " * 41
    path = tmp_path / "lines.txt"
    path.write_text("cat\n" * 10 + f"{long}\n" * 3, "utf-8")
    for way in ("truncate", "split"):
        encoder = SentenceEncoder.load(tmp_path / "model", on_too_long=way)
        assert encode_file(encoder, path, tmp_path / f"{way}.npy").too_long == 3
    said = r"lines\.txt line 11 .*41 tokens.* 40.*`on_too_long="
    with pytest.raises(InputError, match=said):
        encode_file(encoder, path, tmp_path / "e.npy", on_too_long="error")
    assert interrupted_sentences(tmp_path / "e.npy") == 8


def test_no_sentences_give_an_empty_file(encoder, tmp_path):
    assert encode_file(encoder, [], tmp_path / "e.npy").n == 0
    assert np.load(tmp_path / "e.npy").shape == (0, 5)
