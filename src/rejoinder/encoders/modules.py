"""The encoders in torch: Transformer, deep averaging network, bidirectional LSTM.

The Transformer follows Yang et al. (2018, §2.3.2 and §4.1; Vaswani et al. 2017), except that
layer normalisation comes before each block (Xiong et al. 2020), so that it trains with the paper's
plain SGD without warm-up tricks. Batches have no padding, as most operations are per token.

The deep averaging network sums rows, then applies a DNN (Yang et al. 2018, §2.3.1).

The LSTM with max pooling is InferSent's encoder (Conneau et al. 2017, §3.2.2). A forward and a
backward LSTM give each word a state; the embedding is the maximum of each unit over the words.
Three things differ from the published code: the maximum ignores padding (its first version
included the zeros after shorter sentences), sentences have no begin and end tokens, and word
vectors are learned, not pre-trained.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rejoinder.encoders import COMBINERS
from rejoinder.encoders.nn import layers
from rejoinder.encoders.settings import BilstmConfig, DanConfig, TransformerConfig
from rejoinder.text.ragged import Padded, Ragged, offsets_of, padded_groups

_PACK_TOKENS = 32_768
"""Maximum tokens in a pack, unless one sentence has more; bounds the memory of a pass."""
_GROUP_TOKENS = 8_192
"""Maximum padded positions in a group; bounds the memory that attention needs."""
_GROUP_OVERHEAD = 16
"""Fixed cost of a group, in sentences."""


@dataclass(frozen=True, slots=True)
class PackedGroup(layers.OnDevice):
    """Positions of the K tokens of G sentences of similar lengths when padded to T positions."""

    lengths: Tensor
    """(G,) int64."""
    present: Tensor
    """(G, T) bool, false where padded."""
    slots: Tensor
    """(K,) int64, the index of each token among the G * T positions."""

    def pad(self, rows: Tensor) -> Tensor:
        """Returns the (K, C) rows of the tokens as (G, T, C), with zeros where padded."""
        padded = rows.new_zeros(self.present.numel(), rows.shape[1])
        return padded.index_copy_(0, self.slots, rows).view(*self.present.shape, -1)

    def unpad(self, padded: Tensor) -> Tensor:
        """Returns the (K, C) rows of the tokens from (G, T, C)."""
        return padded.flatten(0, 1).index_select(0, self.slots)


@dataclass(frozen=True, slots=True)
class Pack(layers.OnDevice):
    """The concatenated P tokens of some sentences."""

    ids: Tensor
    """(P,) int64."""
    positions: Tensor
    """(P,) int64, the position of each token in its sentence."""
    offsets: Tensor
    """(S + 1,) int32, where each of the S sentences begins, and P."""
    longest: int
    """Number of tokens of the longest sentence."""
    groups: tuple[PackedGroup, ...]

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Returns the (K, C) rows of each group from (P, C)."""
        # a single operation, and so is its gradient
        return torch.split(rows, [len(group.slots) for group in self.groups])


def pack_sentences(batch: Ragged) -> layers.SortedBatch:
    """Returns a batch whose parts are packs. NumPy only, so that another thread can run it."""
    groups = padded_groups(batch, _GROUP_TOKENS, _GROUP_OVERHEAD)
    packs, pack, size = [], list[Padded](), 0
    for group in groups:
        tokens = int(group.present.sum())
        if pack and size + tokens > _PACK_TOKENS:
            packs.append(_packed(pack))
            pack, size = [], 0
        pack.append(group)
        size += tokens
    if pack:
        packs.append(_packed(pack))
    return layers.sorted_batch(len(batch), groups, packs)


def _packed(groups: list[Padded]) -> Pack:
    ids = np.concatenate([group.ids[group.present] for group in groups])
    slots = [np.flatnonzero(group.present) for group in groups]
    positions = np.concatenate(
        [held % group.present.shape[1] for held, group in zip(slots, groups, strict=True)]
    )
    lengths = [group.present.sum(axis=1, dtype=np.int64) for group in groups]
    offsets = offsets_of(np.concatenate(lengths)).astype(np.int32)
    packed = (
        PackedGroup(*map(torch.from_numpy, parts))
        for parts in zip(lengths, [group.present for group in groups], slots, strict=True)
    )
    longest = max(group.present.shape[1] for group in groups)
    tensors = torch.from_numpy(ids), torch.from_numpy(positions), torch.from_numpy(offsets)
    return Pack(*tensors, longest, tuple(packed))


varlen_attn: Any = None
"""Attention without padding, for GPUs; None in PyTorch before 2.10."""
with suppress(ImportError):
    from torch.nn.attention.varlen import varlen_attn

Attend = Callable[[Tensor, int], Tensor]
"""Maps queries, keys and values of tokens, (..., 3 * C), and the number of heads to (..., C)."""


class TransformerEncoder(nn.Module):
    """Encodes a sentence as the mean of its subwords' last hidden states, mapped to D dimensions.

    Shapes: N sentences, G sentences of a group, T positions, C hidden, H heads, D embedding
    dimension.
    """

    def __init__(self, rows: int, config: TransformerConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.embedding = nn.Embedding(rows, config.hidden)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)
        self.projection = nn.Linear(config.hidden, config.dim)
        self._draw(generator)

    def tables(self) -> list[layers.SparseTable]:
        """Returns an empty list: subword tables are small, and their gradients are dense."""
        return []

    def collate(self, batch: Ragged) -> layers.SortedBatch:
        """Returns what `forward` reads; NumPy only, so that another thread can run it."""
        return pack_sentences(batch)

    def forward(self, batch: layers.SortedBatch, *, normalize: bool = True) -> Tensor:
        """(N, D) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        return layers.encode_parts(batch, self._encode, self.dim, normalize=normalize)

    def _encode(self, pack: Pack) -> Tensor:
        """Returns the (G, D) embeddings of the sentences of a pack, not normalised."""
        signal = sinusoids(pack.longest, self.config.hidden, pack.ids.device)
        attend = attend_packed(pack, self.config)
        states = self._states(self.embedding(pack.ids), signal[pack.positions], attend)
        means = [
            group.pad(rows).sum(dim=1) / group.lengths[:, None]
            for group, rows in zip(pack.groups, pack.split(states), strict=True)
        ]
        return self.projection(torch.cat(means))  # type: ignore[no-any-return]

    def encode_group(self, group: layers.PaddedGroup) -> Tensor:
        """Returns the embeddings of a padded group, (G, D), not normalised; for export as a graph.

        It is `forward` without packs.
        """

        def attend(query_key_value: Tensor, heads: int) -> Tensor:
            return attend_padded(query_key_value, group.present, heads)

        rows = self.embedding(group.ids)
        signal = sinusoids(rows.shape[1], self.config.hidden, rows.device)
        states = self._states(rows, signal, attend) * group.present.unsqueeze(2)
        means = states.sum(dim=1) / group.present.sum(dim=1, keepdim=True)  # (G, C)
        return self.projection(means)  # type: ignore[no-any-return]

    def _states(self, rows: Tensor, signal: Tensor, attend: Attend) -> Tensor:
        """Returns the last hidden states of tokens, (..., C) float32, from rows of the table."""
        x = rows * math.sqrt(self.config.hidden) + signal
        x = F.dropout(x, self.config.dropout, self.training)
        for block in self.blocks:
            x = block(x, attend)
        return self.norm(x).float()  # type: ignore[no-any-return]

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        """Draws all weights: matrices by Glorot's rule, subwords with deviation C**-0.5."""
        for name, parameter in self.named_parameters():
            if name == "embedding.weight":
                parameter.normal_(0.0, self.config.hidden**-0.5, generator=generator)
            elif parameter.ndim == 2:
                bound = math.sqrt(6.0 / sum(parameter.shape))
                parameter.uniform_(-bound, bound, generator=generator)
            elif name.endswith("bias"):
                parameter.zero_()


class _Block(nn.Module):
    """Self-attention and a feed-forward network, both with pre-normalisation and a residual."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.heads, self.dropout = config.heads, config.dropout
        self.attention_norm = nn.LayerNorm(hidden)
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)
        self.filter_norm = nn.LayerNorm(hidden)
        self.filter_in = nn.Linear(hidden, config.filter)
        self.filter_out = nn.Linear(config.filter, hidden)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """(..., C) to (..., C)."""
        mixed = self.out(attend(self.query_key_value(self.attention_norm(x)), self.heads))
        x = x + F.dropout(mixed, self.dropout, self.training)
        y = self.filter_out(F.relu(self.filter_in(self.filter_norm(x))))
        return x + F.dropout(y, self.dropout, self.training)


def attend_packed(pack: Pack, config: TransformerConfig) -> Attend:
    """Returns the attention within the sentences of a pack.

    In bfloat16 on a GPU, a kernel needs no padding; otherwise groups are padded.
    """

    def by_group(query_key_value: Tensor, heads: int) -> Tensor:
        parts = zip(pack.groups, pack.split(query_key_value), strict=True)
        return torch.cat(
            [
                group.unpad(attend_padded(group.pad(rows), group.present, heads))
                for group, rows in parts
            ]
        )

    def unpadded(query_key_value: Tensor, heads: int) -> Tensor:
        split = query_key_value.view(len(query_key_value), 3, heads, -1)
        bounds = pack.offsets, pack.offsets, pack.longest, pack.longest
        return varlen_attn(*split.unbind(1), *bounds).flatten(1)  # type: ignore[no-any-return]

    size = config.hidden // config.heads
    low = pack.ids.is_cuda and torch.is_autocast_enabled("cuda")
    return unpadded if varlen_attn and low and size % 8 == 0 and size <= 256 else by_group


def attend_padded(query_key_value: Tensor, present: Tensor, heads: int) -> Tensor:
    """Returns (G, T, C), the attention of each token within its sentence, from (G, T, 3 * C)."""
    count, positions, width = query_key_value.shape
    split = query_key_value.view(count, positions, 3, heads, width // 3 // heads)
    query, key, value = split.permute(2, 0, 3, 1, 4)  # (G, H, T, C / H) each
    mixed = attention(query, key, value, present[:, None, None, :])  # queries see all tokens
    return mixed.transpose(1, 2).reshape(count, positions, width // 3)


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Returns the (G, H, T, d) scaled dot-product attention of Vaswani et al. (eq. 1).

    `mask` is true where a key may be read, and broadcasts to (G, H, T, T).

    On the CPU, PyTorch's fused kernel is meant for long texts. For sentences in bfloat16, plain
    products take a fraction of its time (`benchmarks/transformer.py`).
    """
    if query.device.type != "cpu":
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = query * query.shape[-1] ** -0.5 @ key.transpose(-1, -2)
    weights = torch.softmax(scores.float().masked_fill(~mask, -math.inf), dim=-1)
    return weights.to(value.dtype) @ value


def sinusoids(positions: int, width: int, device: torch.device) -> Tensor:
    """Returns (positions, width) float32: sines, then cosines, of wavelengths 2 pi to 20,000 pi.

    The timing signal of tensor2tensor, which the paper used; Vaswani et al. (§3.5) interleave the
    same columns.
    """
    half = width // 2
    steps = torch.arange(half, dtype=torch.float32, device=device) / max(half - 1, 1)
    rates = torch.exp(-math.log(10_000.0) * steps)
    angles = torch.arange(positions, dtype=torch.float32, device=device)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class DanEncoder(nn.Module):
    """Encodes a sentence as the sum of its rows, followed by dense layers.

    Shapes: N sentences, U touched rows, W row width, D embedding dimension.
    """

    def __init__(self, rows: int, config: DanConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        # a sum of n such rows over sqrt(n) has entries of variance 1 / W: a vector of length 1
        self.table = layers.SparseTable(rows, config.width, config.width**-0.5, generator)
        self.dnn = layers.FeedForward(
            config.width,
            config.layers,
            config.activation,
            residual=config.residual,
            generator=generator,
        )

    def tables(self) -> list[layers.SparseTable]:
        """Returns the embedding table."""
        return [self.table]

    def collate(self, batch: Ragged) -> layers.BagIndex:
        """Returns what `forward` reads; NumPy only, so that another thread can run it."""
        return layers.index_bags(batch)

    def forward(self, batch: layers.BagIndex, *, normalize: bool = True) -> Tensor:
        """(N, D) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        counts = batch.counts
        sums = self.table.sum_bags(batch)  # (N, W)
        power = COMBINERS[self.config.combiner]
        # multiply: division takes much longer, in the backward pass too
        pooled = sums * counts.clamp(min=1).to(sums.dtype).pow(-power).unsqueeze(1)
        out = self.dnn(pooled)
        present = counts > 0
        return layers.unit_rows(out, present) if normalize else out.float() * present.unsqueeze(1)


_GROUP_WORDS = 4_096
"""Padded positions per pass; bounds the memory of the states."""
_PASS_OVERHEAD = 64
"""Fixed cost of a pass, in sentences: the matrix products of a time step are inefficient for few
sentences."""


@dataclass(frozen=True, slots=True)
class WordBatch(layers.OnDevice):
    """Padded sentences, with the U different words that they contain."""

    rows: Tensor
    """(U,) int64, the touched rows of the table, in ascending order."""
    padded: layers.SortedBatch
    """Its parts are `PaddedGroup`s, with indices into `rows` as ids."""


class BilstmEncoder(nn.Module):
    """Encodes a sentence as the maximum over the states of a forward and a backward LSTM.

    Shapes: N sentences, G sentences of a group, T positions, U touched rows, W row width, H units
    per direction, D embedding dimension.
    """

    def __init__(self, rows: int, config: BilstmConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.dim = config.dim
        self.table = layers.SparseTable(rows, config.width, config.width**-0.5, generator)
        # One module per direction: oneDNN's LSTM takes padded batches. A backward LSTM over
        # reversed sentences needs no packing, which is several times as slow on the CPU.
        self.forwards = nn.LSTM(config.width, config.hidden)
        self.backwards = nn.LSTM(config.width, config.hidden)
        self.projection = nn.Linear(2 * config.hidden, config.dim) if config.projected else None
        self._draw(generator)

    def tables(self) -> list[layers.SparseTable]:
        """Returns the embedding table."""
        return [self.table]

    def collate(self, batch: Ragged) -> WordBatch:
        """Returns what `forward` reads; NumPy only, so that another thread can run it."""
        batch = batch.first(self.config.max_tokens)
        rows, local = np.unique(batch.ids, return_inverse=True)
        padded = layers.pad_groups(
            Ragged(local.astype(np.int32), batch.offsets), _GROUP_WORDS, _PASS_OVERHEAD
        )
        return WordBatch(torch.from_numpy(rows.astype(np.int64)), padded)

    def forward(self, batch: WordBatch, *, normalize: bool = True) -> Tensor:
        """(N, D) float32: unit rows if `normalize`, and zero rows for empty sentences."""
        values = self.table.gather(batch.rows)  # (U, W)
        encode = partial(self._encode, values)
        return layers.encode_parts(batch.padded, encode, self.dim, normalize=normalize)

    def encode_group(self, group: layers.PaddedGroup) -> Tensor:
        """Returns the embeddings of a group whose ids are rows of the table, (G, D)."""
        return self._encode(self.table.weight, group)

    def _encode(self, values: Tensor, group: layers.PaddedGroup) -> Tensor:
        """(G, D), not normalised."""
        # an LSTM steps through the first dimension, the positions
        forth = _states(self.forwards, F.embedding(group.ids.T, values))  # (T, G, H)
        back = _states(self.backwards, F.embedding(_reversed(group).T, values))
        # the maximum does not depend on the order of the backward states
        padding = ~group.present.T.unsqueeze(2)  # (T, G, 1)
        pooled = torch.cat([_largest(forth, padding), _largest(back, padding)], dim=1)  # (G, 2H)
        return pooled if self.projection is None else self.projection(pooled)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator) -> None:
        """Draws all weights: PyTorch's rule for LSTMs, as published, and Glorot's for the map."""
        for lstm in (self.forwards, self.backwards):
            for parameter in lstm.parameters():
                bound = self.config.hidden**-0.5
                parameter.uniform_(-bound, bound, generator=generator)
        if self.projection is not None:
            bound = (6.0 / sum(self.projection.weight.shape)) ** 0.5
            self.projection.weight.uniform_(-bound, bound, generator=generator)
            self.projection.bias.zero_()


def _states(lstm: nn.LSTM, words: Tensor) -> Tensor:
    """Returns (T, G, H), the states of an LSTM over (T, G, W)."""
    device = words.device.type
    if device == "cpu" and torch.is_autocast_enabled(device) and not _low_lstms():
        with torch.autocast(device, enabled=False):
            return lstm(words.float())[0]  # type: ignore[no-any-return]
    return lstm(words)[0]  # type: ignore[no-any-return]


def _low_lstms() -> bool:
    """Whether oneDNN has LSTMs in bfloat16 for this processor; they need AVX-512."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _reversed(group: layers.PaddedGroup) -> Tensor:
    """Returns (G, T) int64, the ids of each sentence in reverse order, followed by padding."""
    lengths = group.present.sum(dim=1, keepdim=True)
    positions = lengths - 1 - torch.arange(group.ids.shape[1], device=group.ids.device)
    return group.ids.gather(1, positions.clamp(min=0))


def _largest(states: Tensor, padding: Tensor) -> Tensor:
    """Returns (G, H), the maximum of `states` (T, G, H) over positions that are not padding."""
    return states.masked_fill(padding, -torch.inf).max(dim=0).values
