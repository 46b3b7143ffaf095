"""Rows of words weighed by frequency and whitened, alone and at the beginning of a phase."""

import pytest
import torch

from rejoinder.errors import ConfigError
from rejoinder.training.config.loading import load_config
from rejoinder.training.initial_rows import whiten
from rejoinder.training.loop import checkpoint
from runs import DAN, same_files

WORDS = 300
TABLE = "encoder.table.weight"


def table(rows=WORDS):
    """Rows with four times the variance in the first direction as in the others."""
    rows = torch.randn(rows, 6, generator=torch.Generator().manual_seed(0))
    rows[:, 0] *= 2
    return rows


def by_frequency(rows):
    """The covariance about 0 of words whose frequencies follow Zipf's law."""
    p = 1 / torch.arange(1, WORDS + 1)
    rows = rows[:WORDS]
    return rows.T @ (rows * (p / p.sum()).unsqueeze(1))


def test_full_whitening_gives_all_directions_the_same_variance():
    rows = table()
    whiten(rows, WORDS, 0.0, 1.0)
    covariance = by_frequency(rows)
    expected = torch.eye(6) * covariance.diagonal().mean()
    torch.testing.assert_close(covariance, expected, atol=1e-4, rtol=1e-4)


def test_partial_whitening_narrows_the_spread_and_keeps_the_mean_length():
    rows, before = table(), table()
    whiten(rows, WORDS, 0.0, 0.5)
    spread, earlier = (torch.linalg.eigvalsh(by_frequency(each)) for each in (rows, before))
    assert spread[-1] / spread[0] == pytest.approx(
        (earlier[-1] / earlier[0]).item() ** 0.5, rel=1e-3
    )
    torch.testing.assert_close(rows.norm(dim=1).mean(), before.norm(dim=1).mean())


def test_sif_shortens_frequent_words_by_a_over_a_plus_p():
    rows, before = table(WORDS + 5), table(WORDS + 5)
    whiten(rows, WORDS, 0.01, 0.0)
    kept = rows.norm(dim=1) / before.norm(dim=1)
    harmonic = (1 / torch.arange(1, WORDS + 1)).sum()
    expected = 0.01 / (0.01 + 1 / (torch.arange(1, WORDS + 1) * harmonic))
    torch.testing.assert_close(kept[:WORDS] / kept[0], expected / expected[0])
    torch.testing.assert_close(kept[WORDS:], kept[WORDS - 1].expand(5))  # as the rarest word


def test_unused_directions_stay_finite():
    rows = table()
    rows[:, 5] = 0
    whiten(rows, WORDS, 0.0, 1.0)
    assert rows.isfinite().all()
    assert rows[:, 5].abs().max() < 1e-6


def test_a_phase_whitens_once_also_in_a_resumed_run(train, tmp_path):
    first, second = DAN["phases"]
    tree = {
        **DAN,
        "encoder": {"kind": "dan", "width": 12, "layers": []},
        "phases": [first, {**second, "table_learning_rate": 0.0, "sif": 0.01, "whitening": 0.5}],
    }
    begins = first["steps"]
    whole, _ = train(tree, tmp_path / "whole")
    train(tree, tmp_path / "parts", stop_at=begins)
    again, _ = train(tree, tmp_path / "parts", resume=True)
    assert same_files(whole.model, again.model)

    config = load_config(tmp_path / "parts/config.toml")
    rows, after = (
        checkpoint.load(tmp_path / f"parts/checkpoints/step-{step}", config).weights[TABLE]
        for step in (begins, config.steps)
    )
    words = len((tmp_path / "parts/vocabulary/vocabulary.txt").read_text().split())
    whiten(rows, words, 0.01, 0.5)
    torch.testing.assert_close(after, rows)


@pytest.mark.parametrize(
    ("config", "settings", "found"),
    [
        ("demo", ["encoder.layers=[8]", "head.layers=[8]"], "phases.0.whitening .* encoder.layers"),
        ("bilstm-nli", [], "phases.0.whitening .* a bilstm"),
    ],
)
def test_only_sums_of_rows_are_whitened(config, settings, found):
    with pytest.raises(ConfigError, match=found):
        load_config(config, [*settings, "phases.0.whitening=0.5"])
