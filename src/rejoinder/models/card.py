"""MODEL_CARD.md: what a model is, for people."""

from collections.abc import Mapping
from typing import Any

_TEMPLATE = """# {name}

A sentence encoder trained by rejoinder {version} on conversations: pairs of messages and replies
(after Yang et al. 2018, *Learning Semantic Textual Similarity from Conversations*).

```python
from rejoinder import SentenceEncoder

encoder = SentenceEncoder.load("{name}")
encoder.similarity(["How old are you?"], ["What is your age?"])
```

| | |
|---|---|
| encoder | {encoder} |
| text | {text} |
| training pairs | {pairs} |
| steps, seed | {steps}, {seed} |
| left out as evaluation sentences | {leaks} ({sets}) |{adapted}

Pairs by source: {data}.

The text of the training data, with its biases and crudeness, shaped this model; its licences are
those of the sources above. It measures likeness of meaning in English, not truth.
"""


def model_card(config: Mapping[str, Any]) -> str:
    """The card of a model, from its `config.json`."""
    training = config.get("training") or {}
    data = training.get("data") or {}
    largest = sorted(data.items(), key=lambda item: -item[1])
    said = ", ".join(f"{name} {count:,}" for name, count in largest[:20]) or "not recorded"
    more = f", and {len(largest) - 20} more" if len(largest) > 20 else ""
    return _TEMPLATE.format(
        name=config["name"],
        version=config["rejoinder_version"],
        encoder=_sizes(config["encoder"]),
        text=_sizes(config["text"]),
        pairs=f"{training.get('pairs') or 0:,}",
        steps=training.get("steps", "?"),
        seed=training.get("seed", "?"),
        leaks=training.get("leaks_dropped", 0),
        sets=", ".join(training.get("leak_sets") or []) or "not looked for",
        data=said + more,
        adapted=_adapted(config.get("adaptation")),
    )


def _adapted(facts: Mapping[str, Any] | None) -> str:
    """A row on the graded pairs that the model was adapted on, where it was."""
    if facts is None:
        return ""
    data = facts.get("data") or {}
    name = " ".join(str(data[key]) for key in ("name", "split") if key in data) or "unnamed data"
    return f"\n| adapted on | {name}, {facts.get('pairs') or 0:,} pairs |"


def _sizes(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items())
