"""Help as it is read at a terminal: nothing swallowed, every command, short options, completion."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from rejoinder.cli.main import app


def commands(command, path=()):
    """All commands with the words that call them."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = list(commands(get_command(app)))


@pytest.mark.parametrize("command", [command for _, command in COMMANDS])
def test_no_bracket_of_a_help_text_is_taken_for_markup(command):
    helps = [getattr(param, "help", None) for param in command.params]
    for text in (command.help, command.short_help, command.epilog, *helps):
        if text:
            assert Text.from_markup(text).plain == text.replace("\\[", "[")


@pytest.mark.parametrize("command", [command for _, command in COMMANDS])
def test_every_argument_and_option_says_what_it_is(command):
    assert command.help
    assert not {param.name for param in command.params if not param.help}


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_both_options_print_the_same_help(path):
    long, short = (
        CliRunner().invoke(app, [*path, option], env={"COLUMNS": "80"})
        for option in ("--help", "-h")
    )
    assert (long.exit_code, short.exit_code) == (0, 0)
    assert long.stdout == short.stdout
    assert "-h" in long.stdout
    assert max(map(len, long.stdout.split("\n"))) <= 80


def test_the_help_of_train_names_its_tables():
    assert "[[tasks]]" in CliRunner().invoke(app, ["train", "-h"], env={"COLUMNS": "80"}).stdout


@pytest.mark.parametrize("name", sorted(path[0] for path, _ in COMMANDS if path))
def test_examples_can_be_copied_from_the_help(name):
    """A line of help is 78 characters wide. Commands, options and numbers of words are real."""
    program = get_command(app)
    for command in (command for path, command in COMMANDS if path[:1] == (name,)):
        title, *examples = command.epilog.strip().split("\n\n")
        assert (title, len(examples) > 0) == ("Examples:", True)
        for example in examples:
            assert len(example) <= 78, example
            assert "../" not in example
            line, _, redirected = example.partition(" < ")
            first, *words = shlex.split(line)
            assert (first, " " in redirected) == ("rejoinder", False)
            called = program
            while words and words[0] in getattr(called, "commands", ()):
                called = called.commands[words.pop(0)]
            called.make_context(called.name, words)  # parses, and does not run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["enocde"], "Did you mean 'encode'?"),
        (["encode", "-m", "model", "--reponse"], "--response"),
        (["search", "-m", "model", "--topk", "3"], "--top-k"),
    ],
)
def test_misspelt_words_are_met_with_the_nearest(words, said):
    result = CliRunner().invoke(app, words, env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_shell_can_complete_commands():
    program = Path(sys.executable).with_name("rejoinder")
    request = {
        "_REJOINDER_COMPLETE": "complete_bash",
        "COMP_WORDS": "rejoinder enc",
        "COMP_CWORD": "1",
    }
    run = subprocess.run(
        [program], env={**os.environ, **request}, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["encode"]
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "--install-completion" in shown
    assert "--show-completion" in shown


def test_the_help_of_evaluate_names_every_baseline():
    """It lists them itself: importing them would double the start-up time."""
    from rejoinder_papers.baselines import BASELINES

    encoder = next(p for path, c in COMMANDS if path == ("evaluate",) for p in c.params[:1])
    listed = encoder.help.split("baseline:")[1].rstrip(".").split(", ")
    assert {name.partition(":")[0] for name in listed} == set(BASELINES)


def test_alone_on_a_terminal_it_shows_a_command_for_each_task():
    leader, follower = os.openpty()
    command = [sys.executable, "-c", "from rejoinder.cli.main import run; run()"]
    done = subprocess.run(command, stdout=follower, stderr=subprocess.PIPE, check=True)
    lines = os.read(leader, 100_000).decode().splitlines()
    os.close(leader)
    os.close(follower)
    assert not done.stderr
    examples = [line[line.index(" rejoinder ") :].split("rejoinder ")[1] for line in lines[:8]]
    known = dict(COMMANDS)
    for example in examples:
        name, *words = shlex.split(example)
        options = {option for param in known[(name,)].params for option in param.opts}
        if name != "index":  # which also takes what `index create` does
            assert {word for word in words if word.startswith("--")} <= options
