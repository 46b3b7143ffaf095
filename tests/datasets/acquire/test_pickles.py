"""COCO's pickles: read as what they are, and nothing of them is run."""

import dataclasses
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from rejoinder.datasets.acquire.files import read_coco_pickle
from rejoinder.datasets.acquire.layout import add
from rejoinder.datasets.catalogue import catalogue
from rejoinder.errors import InputError

FEATURES = np.arange(12, dtype=np.float32).reshape(3, 4)


def tree(features: object) -> dict[str, object]:
    captions = {number: {"cleaned_caption": f"caption {number} caf\xc3\xa9"} for number in range(6)}
    return {
        "features": features,
        "image_to_caption_ids": {row: [2 * row, 2 * row + 1] for row in range(3)},
        "captions": captions,
    }


class Harm:
    """What runs a command where a pickle is loaded without care."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.place),)


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "features", [FEATURES, np.asfortranarray(FEATURES), FEATURES.astype(">f8"), list(FEATURES)]
)
def test_features_and_captions(tmp_path, protocol, features):
    path = tmp_path / "test.pkl"
    path.write_bytes(pickle.dumps(tree(features), protocol))
    found, captions = read_coco_pickle(path)
    assert found.dtype == np.float32
    assert found.tolist() == FEATURES.tolist()
    assert captions[1] == ["caption 2 café", "caption 3 café"]


@pytest.mark.parametrize("where", ["features", "captions", "more"])
def test_a_malicious_pickle_runs_nothing(tmp_path, where):
    path, place = tmp_path / "test.pkl", tmp_path / "harm"
    path.write_bytes(pickle.dumps({**tree(FEATURES), where: Harm(place)}, 2))
    with pytest.raises(InputError, match=r"it calls \w+\.mkdir"):
        read_coco_pickle(path)
    assert not place.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct.__globals__\n.",
        pickle.dumps(tree(np.array([["a"]] * 3, object))),
        pickle.dumps(["a"]),
        pickle.dumps({"features": FEATURES}),
        pickle.dumps(tree(np.array([[np.nan]] * 3))),
        pickle.dumps(tree(FEATURES[0])),
        pickle.dumps(tree(np.array([["a"]] * 3))),
        pickle.dumps(tree(FEATURES))[:60],
        b"",
        b"no pickle",
    ],
)
def test_other_pickles_are_refused(tmp_path, content):
    path = tmp_path / "test.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"test\.pkl"):
        read_coco_pickle(path)


def test_the_conversion(tmp_path):
    coco = catalogue().sets["coco"]
    small = dataclasses.replace(
        coco, files=tuple(dataclasses.replace(file, rows=3) for file in coco.files)
    )
    (tmp_path / "COCO").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "COCO" / f"{split}.pkl").write_bytes(pickle.dumps(tree(FEATURES), 2))
    [added] = add([small], [tmp_path / "COCO"], tmp_path / "data")
    folder = tmp_path / "data/downstream/COCO"
    assert len(added.files) == 6
    assert added.missing == ()
    assert "made of train.pkl" in " ".join(added.notes)
    assert load_file(folder / "valid.safetensors")["features"].tolist() == FEATURES.tolist()
    assert len(json.loads((folder / "valid.json").read_text("utf-8"))["captions"]) == 3
    with pytest.raises(InputError, match=r"has 3 rows; .* 5,000"):
        add([coco], [tmp_path / "COCO"], tmp_path / "other")
