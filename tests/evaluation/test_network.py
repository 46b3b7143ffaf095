"""The original's network, all folds and penalties at once, against one plain loop after another."""

import numpy as np
import pytest

import senteval_reference as reference
from rejoinder.evaluation.classifiers.learners import ClassifierSettings, Fold
from rejoinder.evaluation.tasks import trained

torch = pytest.importorskip("torch")
network = pytest.importorskip("rejoinder.evaluation.classifiers.network")

pytestmark = pytest.mark.usefixtures("one_thread")


def planted(rows, classes, width, seed):
    directions = np.random.default_rng(0).standard_normal((width, classes))
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, width)).astype(np.float32)
    return x, (x @ directions + 2 * generator.gumbel(size=(rows, classes))).argmax(axis=1)


def plain(networks, fold, place, nhid):
    """The network of a fold and a penalty as torch's own modules."""
    tensors = [p.detach()[fold] for p in networks.parameters]
    first = torch.nn.Linear(tensors[0].shape[0], tensors[0].shape[2])
    layers = [first]
    with torch.no_grad():
        first.weight.copy_(tensors[0][:, place].T)
        first.bias.copy_(tensors[1][0, place])
        if nhid:
            second = torch.nn.Linear(nhid, tensors[2].shape[2])
            second.weight.copy_(tensors[2][place].T)
            second.bias.copy_(tensors[3][place, 0])
            layers += [torch.nn.Sigmoid(), second]
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize(("nhid", "optim"), [(0, "Adam"), (7, "Adam"), (0, "RMSprop")])
def test_networks_trained_together_are_those_trained_alone(nhid, optim):
    x, y = planted(500, 3, 20, 1)
    folds = [np.arange(0, 333), np.arange(160, 490)]
    decays = [1e-4, 1e-1]
    settings = ClassifierSettings(
        mode="compat", usepytorch=True, nhid=nhid, optim=optim.lower(), max_epoch=0, epoch_size=2
    )
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    networks = network.Networks(network.NetworkLearner(settings, x, y), [decays] * 2)
    alone = [[plain(networks, fold, place, nhid) for place in range(2)] for fold in range(2)]
    networks.fit(
        folds,
        [np.arange(490, 500)] * 2,
        [np.random.RandomState(settings.seed) for _ in folds],
    )

    for fold, rows in enumerate(folds):
        chance = np.random.RandomState(settings.seed)
        order = [rows[chance.permutation(len(rows))] for _ in range(2)]
        for place, decay in enumerate(decays):
            model = reference.trained_network(
                alone[fold][place], order, inputs, labels, decay, optim
            )
            together = plain(networks, fold, place, nhid)
            for one, other in zip(model.parameters(), together.parameters(), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_last_step_of_a_shorter_fold_is_its_own():
    """Folds are trained together only if an epoch has as many steps in each."""
    x, y = planted(200, 2, 5, 1)
    settings = ClassifierSettings(mode="compat", usepytorch=True, max_epoch=0, epoch_size=1)
    learner = network.NetworkLearner(settings, x, y)
    splits = [(np.arange(size), np.arange(size, 200), [0.1]) for size in (128, 129, 128, 130)]
    draws = [np.random.RandomState(0) for _ in splits]
    assert sorted(group for group, *_ in learner._trained(splits, draws)) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("hidden", [0, 6])
def test_every_network_begins_and_goes_on_as_the_originals(hidden):
    """Alone, with the global generators seeded anew, each has the same accuracy."""
    x, y = planted(300, 3, 12, 1)
    settings = ClassifierSettings(
        mode="compat", usepytorch=True, nhid=hidden, seed=7, optim="adam,lr=0.01"
    )
    # two lengths, which are trained separately, each in its order
    folds = [
        Fold(np.arange(0, 200), np.arange(200, 300)),
        Fold(np.arange(100, 230), np.arange(0, 90)),
    ]
    decays = [1e-4, 1e-1]
    learner = network.NetworkLearner(settings, x, y)
    found = learner.predict([fold._replace(stop=fold.test) for fold in folds], [decays, decays])
    for fold, (train, stop, _) in enumerate(folds):
        for place, decay in enumerate(decays):
            held = (x[stop], y[stop])
            _, expected = reference.stopped_network(
                x[train], y[train], 3, 7, decay, held, 0.01, hidden
            )
            assert (found[fold][place] == y[stop]).mean() == pytest.approx(expected, abs=0.011)


@pytest.mark.slow
def test_accuracy_is_that_of_the_protocol_seed_by_seed():
    x, y = planted(1_500, 3, 20, 1)
    parts = (x[:500], y[:500], x[500:], y[500:])
    settings = {"mode": "compat", "usepytorch": True, "kfold": 2, "optim": "adam,lr=0.01"}
    scores = []
    for seed in range(2):
        expected, dev = reference.network_kfold_accuracy(*parts, 2, seed, 0.01)
        chosen = ClassifierSettings(seed=seed, **settings)
        found = trained.fitted_split(parts[::2], parts[1::2], chosen)
        # sums in another order: one row of 500, and three of 1,000
        assert found.dev_accuracy == pytest.approx(dev, abs=0.21)
        assert found.test_accuracy == pytest.approx(expected, abs=0.31)
        scores.append(found.test_accuracy)
    assert len(set(scores)) > 1


def test_dropout_draws_from_its_own_generator():
    x, y = planted(300, 2, 10, 1)
    settings = ClassifierSettings(
        mode="compat", usepytorch=True, nhid=8, dropout=0.5, kfold=3, max_epoch=8
    )
    parts = ((x[:200], x[200:]), (y[:200], y[200:]))
    first = trained.fitted_split(*parts, settings)
    torch.rand(3)
    assert np.array_equal(first.predictions, trained.fitted_split(*parts, settings).predictions)
