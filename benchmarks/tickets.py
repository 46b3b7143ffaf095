"""Tickets of a help desk whose agents answer with templates: is the right template suggested?

    python benchmarks/tickets.py --data ../shared/data --past 20 --seeds 0 1 2 --finetune

Zendesk's export is made of questions that people wrote (`banking77`, `clinc150`): each intent has
one template, which agents fill in and sign. `--held` questions that no past ticket has are answered
by `Suggestions`. Prints a line of JSON for each set, seed and model: the share of questions whose
template is the first suggestion, and is among three. `--wrong` prints the others.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rejoinder import Suggestions, finetune
from rejoinder.corpus.extract import extract
from rejoinder.datasets.catalogue import read_bytes

OPENINGS = ("Thanks for getting in touch about {}.", "Sorry for the trouble with {}.")
STEPS = (
    "Open the menu, choose {}, and follow the steps on the screen.",
    "Our page on {} explains each step: https://help.example.com",
    "Please reply with a screenshot, so that our team for {} can look into it.",
    "You can do this yourself in the settings, in the section {}.",
    "This takes up to three working days, and we write to you when it is done.",
    "I have passed this on to a colleague, who calls you tomorrow.",
    "We cannot change this from here, but the branch in your town can.",
    "Please restart the app first; most problems with {} go away with it.",
    "Your account has to be verified before we go on with {}.",
)
HELLOS = ("Hi {},", "Hello {},", "Dear {},", "Good morning {},")
ASKED = ("{}", "{}", "Hi, {}", "Hello team,\n\n{}\n\nThanks, {name}", "{} My number is {number}.")
FILLED = ("", "", "Your case has the number {number}.", "I looked into your order {number}.")
AGENTS = ("Priya Nair", "Tom Becker", "Lucia Ortega", "Sam Whitfield", "Mei Lin", "Jonas Dahl")
NAMES = ("Anna", "Omar", "Zoe", "Ben", "Carla", "Dmitri", "Ella", "Farid", "Grace", "Hugo")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--past", type=int, default=20, help="tickets of each intent")
    parser.add_argument("--held", type=int, default=50)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--finetune", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    chosen = parser.parse_args()
    for name in ("banking77", "clinc150"):
        content = read_bytes(chosen.data / f"paraphrases/{name}_groups.jsonl.zst")
        groups = map(json.loads, content.splitlines())
        intents = {one["group"].replace("_", " "): one["sentences"] for one in groups}
        for seed in chosen.seeds:
            with tempfile.TemporaryDirectory() as folder:
                row = {"set": name, "past": chosen.past, "n": chosen.held, "seed": seed}
                for model, found in tried(intents, seed, chosen, Path(folder)):
                    print(json.dumps({**row, "model": model, **found}), flush=True)


def tried(
    intents: dict[str, list[str]], seed: int, chosen: Any, folder: Path
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields how often the model is right, and then the same model fine-tuned, if it was kept."""
    draw, export, past, left = random.Random(seed), folder / "tickets.json", [], []  # noqa: S311
    for intent, sentences in intents.items():
        texts = list({text.lower(): text for text in sentences}.values())
        draw.shuffle(texts)
        past += [(intent, text) for text in texts[: chosen.past]]
        left += [(intent, text) for text in texts[chosen.past :]]
    known = {text.lower() for _, text in past}
    held = draw.sample([one for one in left if one[1].lower() not in known], chosen.held)
    rows = (ticket(at, text, template(intent), draw) for at, (intent, text) in enumerate(past))
    export.write_text("\n".join(map(json.dumps, rows)))
    yield chosen.model, judged(Suggestions.open(export, chosen.model), past, held, chosen)
    if chosen.finetune:
        extract(export, folder / "pairs", split=(80, 10, 10))
        mine = finetune(folder / "pairs", out=folder / "mine", model=chosen.model, seed=seed).folder
        if mine is not None:
            found = judged(Suggestions.open(export, mine), past, held, chosen)
            yield f"{chosen.model}, fine-tuned", found


def template(intent: str) -> str:
    """Returns what agents answer to an intent; it shares its sentences with others."""
    draw = random.Random(intent)  # noqa: S311
    parts = [draw.choice(OPENINGS), *draw.sample(STEPS, draw.choice((1, 2, 3)))]
    return " ".join([*parts, "Let me know if anything is unclear."]).replace("{}", intent)


def ticket(at: int, text: str, answer: str, draw: random.Random) -> dict[str, Any]:
    """Returns a row of Zendesk's export. Every third customer says thanks."""
    name, agent, number = draw.choice(NAMES), draw.choice(AGENTS), draw.randrange(10**5)
    asked = draw.choice(ASKED).format(text, name=name, number=number)
    filled = [draw.choice(HELLOS).format(name), draw.choice(FILLED).format(number=number)]
    said = [asked, "\n\n".join([*filled, answer, f"Best regards,\n{agent}"])]
    said += draw.choice([[], [], ["Thanks, that helped!", f"You are welcome, {name}!"]])
    user, staff = {"id": at + 1_000, "name": name}, {"id": AGENTS.index(agent), "name": agent}
    when = f"2026-{1 + at % 12:02}-{1 + at % 28:02}T08:{{:02}}:00Z"
    comments = [
        {"id": n, "author_id": one["id"], "plain_body": body, "created_at": when.format(n)}
        for n, (one, body) in enumerate(zip((user, staff) * 2, said, strict=False))
    ]
    about = {"id": at, "requester_id": user["id"], "requester": user, "assignee": staff}
    return about | {"via": {"channel": "email"}, "comments": comments}


def judged(opened: Suggestions, past: Any, held: Any, chosen: Any) -> dict[str, float]:
    """Returns the shares of `held`, intents and questions, that are right."""
    first = among = 0
    for intent, text in held:
        best = opened.suggest(text).suggestions
        ids = [one.id.split("/") for one in best]
        given = [past[int(at)][0] if n == "1" else "another comment" for at, n in ids]
        first, among = first + (given[0] == intent), among + (intent in given)
        if chosen.wrong and given[0] != intent:
            print(f"{text!r} of {intent}: {given}; {best[0].alike} answered {best[0].answered!r}")
    return {"first": first / len(held), "of_three": among / len(held)}


if __name__ == "__main__":
    main()
