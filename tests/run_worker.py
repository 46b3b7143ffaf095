"""A worker of a run in a separate process, with the environment that torchrun would give it."""

import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import save_file

from rejoinder.cli.output import status_of
from rejoinder.corpus.writer import open_pairs
from rejoinder.training.config.loading import parse_config
from rejoinder.training.data.preparation import Data
from rejoinder.training.loop.checkpoint import SilentReporter
from rejoinder.training.loop.loop import Limits, Trainer
from rejoinder.training.loop.run import begin, go_on
from rejoinder.training.workers import joined_workers

import_module("torch._dynamo")  # optimisers import it when they are made, which takes seconds


class Reporter(SilentReporter):
    """Sends its process a signal after a step."""

    def __init__(self, at):
        self.at = at

    def step(self, step, metrics):
        if step == self.at:
            os.kill(os.getpid(), signal.SIGTERM)


def run_worker(asked, environment, result, errors):
    """Takes part in a run; writes its outcome and what it says to files, and exits as a command."""
    os.environ.update(environment)
    said = os.open(errors, os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    sys.exit(status_of(lambda: Path(result).write_text(json.dumps(trained(asked)))))


def trained(asked):
    torch.set_num_threads(1)
    with joined_workers("cpu") as workers:
        if asked.get("ends") == workers.rank:
            end_at(asked["at"])
        if asked.get("bad") == workers.rank:
            spoil_at(asked["at"])
        if asked.get("gradients") and workers.leads:
            store_gradients(Path(asked["gradients"]))
        data = Data(open_pairs(Path(asked["pairs"])), Path(asked["labelled"]))
        run = Path(asked["run"])
        with workers.agreed():
            config = parse_config(asked["config"], "test")
            if workers.leads and not asked.get("resume"):
                begin(config, data, run, overwrite=False, progress=lambda _done, _all: None)
        result = go_on(
            run,
            data,
            Limits(asked.get("stop_at")),
            evaluate=lambda _model: {"p_at_1": 0.5},
            reporter=Reporter(asked.get("signalled")),
            workers=workers,
        )
        return {"done": result.done, "steps": result.steps, "scores": dict(result.scores)}


def end_at(at):
    """Kills this process in the middle of a step."""
    before = Trainer.take

    def take(self, step, *rest):
        if step == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return before(self, step, *rest)

    Trainer.take = take


def spoil_at(at):
    """Makes a weight of this worker NaN before a step."""
    before = Trainer.take

    def take(self, step, batch, flags):
        if step == at:
            with torch.no_grad():
                next(self.model.heads["responses"].parameters()).fill_(float("nan"))
        return before(self, step, batch, flags)

    Trainer.take = take


def store_gradients(path):
    """Stores the gradients of the first step, as the optimisers get them."""
    before = Trainer.take

    def take(self, step, batch, flags):
        def finite(optimizers):
            if step == 0:
                save_file(gradients(self), path)
            return type(optimizers).finite(optimizers)

        self.optimizers.finite = lambda: finite(self.optimizers)
        return before(self, step, batch, flags)

    Trainer.take = take


def gradients(steps):
    found = {
        name: parameter.grad.clone()
        for name, parameter in steps.model.named_parameters()
        if parameter.grad is not None
    }
    for number, table in enumerate(steps.optimizers.rows):
        dense = torch.zeros_like(table.table.weight)
        dense[table.pending.rows] = table.pending.summed()
        found[f"table {number}"] = dense
    return found
