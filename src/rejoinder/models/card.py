"""Writes MODEL_CARD.md, the description of a model for people."""

from collections.abc import Mapping
from typing import Any

from rejoinder.adaptation.linear import source_of

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
| pairs dropped as leaks | {leaks} ({sets}) |{adapted}{exported}

Pairs by source: {data}.

The model reflects the biases and the crude language of its training text, whose sources have
licences of their own. It measures similarity of meaning in English, not truth.
"""


def model_card(config: Mapping[str, Any]) -> str:
    """Returns the model card as Markdown, from the content of `config.json`."""
    training = config.get("training") or {}
    data = training.get("data") or {}
    largest = sorted(data.items(), key=lambda item: -item[1])
    sources = ", ".join(f"{name} {count:,}" for name, count in largest[:20]) or "not recorded"
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
        sets=", ".join(training.get("leak_sets") or []) or "not checked",
        data=sources + more,
        adapted=_adapted(config.get("adaptation")),
        exported=_exported(config.get("export")),
    )


def _adapted(facts: Mapping[str, Any] | None) -> str:
    """Returns the table row about the adaptation of an adapted model."""
    if facts is None:
        return ""
    return f"\n| adapted on | {source_of(facts)}, {facts.get('pairs') or 0:,} pairs |"


def _exported(facts: Mapping[str, Any] | None) -> str:
    """Returns the table row about the model that a smaller model was made from."""
    if facts is None:
        return ""
    kept = {"dtype": "weights", "dim": "dimensions", "max_words": "words",
            "unknown_buckets": "buckets of unknown words"}  # fmt: skip
    options = [f"{facts[key]} {what}" for key, what in kept.items() if facts.get(key) is not None]
    dropped = [f"without the head of {head}" for head in facts["dropped"]]
    source = facts["from"]
    said = ", ".join([f"SHA-256 {source['sha256'][:12]}", *options, *dropped])
    return f"\n| exported from | {source['name']}, {said} |"


def _sizes(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in table.items())
