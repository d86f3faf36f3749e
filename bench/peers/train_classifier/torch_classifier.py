"""Headlight's text classifier (headlight/models/text_classifier.h), written plainly in PyTorch.

Used twice: as the peer that is timed beside Headlight, and as the source of the goldens in tests/goldens, so that
the model that is timed is the one that was shown to be equal. Activations are padded: [batch, longest, dim].
"""

import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Config:
    vocabulary: int
    classes: int
    max_len: int = 512
    dim: int = 256
    layers: int = 2
    heads: int = 8
    head_dim: int = 0  # 0: dim / heads
    feed_forward: int = 0  # 0: 4 * dim
    positions: str = "sinusoidal"  # none, learned, sinusoidal, relative
    relative_distance: int = 0  # 0: max_len
    relative_values: bool = False
    norm: str = "post"  # post, pre
    activation: str = "relu"  # relu, gelu
    pooling: str = "mean"  # mean, first, max, attention
    causal: bool = False
    projection_bias: bool = True
    output_projection: bool = True
    scale: str = "sqrt"  # sqrt, fourth-root
    dropout: float = 0.0
    attention_dropout: float = 0.0
    norm_epsilon: float = 1e-5


def sinusoidal(length, dim, dtype):
    """Vaswani et al. 2017, section 3.5."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.pow(10000.0, -torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    table = torch.zeros(length, dim, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : dim // 2]
    return table.to(dtype)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.head_dim = config.head_dim or config.dim // config.heads
        inner = config.heads * self.head_dim
        self.projection = nn.Linear(config.dim, 3 * inner, bias=config.projection_bias)  # query, key, value
        self.output = nn.Linear(inner, config.dim) if config.output_projection else None
        self.relative_key = self.relative_value = None
        if config.positions == "relative":
            rows = 2 * (config.relative_distance or config.max_len) - 1
            self.relative_key = nn.Parameter(torch.zeros(config.heads, rows, self.head_dim))
            if config.relative_values:
                self.relative_value = nn.Parameter(torch.zeros(config.heads, rows, self.head_dim))

    def scale(self):
        return self.head_dim ** (-0.5 if self.config.scale == "sqrt" else -0.25)

    def forward(self, x, keep):
        """x [batch, n, dim]; keep: None, or bool, broadcast to [batch, heads, n, n]."""
        batch, n, _ = x.shape
        heads = self.config.heads
        query, key, value = (
            self.projection(x).view(batch, n, 3, heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0))
        if self.relative_key is None:
            dropout = self.config.attention_dropout if self.training else 0.0
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=keep, dropout_p=dropout, scale=self.scale())
        else:
            mixed = self.with_relative_positions(query, key, value, keep)
        mixed = mixed.transpose(1, 2).reshape(batch, n, heads * self.head_dim)
        return mixed if self.output is None else self.output(mixed)

    def with_relative_positions(self, query, key, value, keep):
        """Shaw et al. 2018, equations 3 and 4, with a table per head; all weights in memory."""
        n = query.shape[2]
        furthest = (self.relative_key.shape[1] - 1) // 2
        place = torch.arange(n)
        row = (place[None, :] - place[:, None]).clamp(-furthest, furthest) + furthest  # key - query
        scores = query @ key.transpose(2, 3)
        scores = scores + torch.einsum("bhqd,hqkd->bhqk", query, self.relative_key[:, row])
        scores = scores * self.scale()
        if keep is not None:
            scores = scores.masked_fill(~keep, -math.inf)
        weights = scores.softmax(-1)
        mixed = weights @ value
        if self.relative_value is not None:
            mixed = mixed + torch.einsum("bhqk,hqkd->bhqd", weights, self.relative_value[:, row])
        return mixed


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden = config.feed_forward or 4 * config.dim
        self.pre = config.norm == "pre"
        self.activation = F.relu if config.activation == "relu" else F.gelu
        self.dropout = config.dropout
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.dim, eps=config.norm_epsilon)
        self.up = nn.Linear(config.dim, hidden)
        self.down = nn.Linear(hidden, config.dim)
        self.feed_forward_norm = nn.LayerNorm(config.dim, eps=config.norm_epsilon)

    def feed_forward(self, x):
        return self.down(self.activation(self.up(x)))

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout > 0 else x

    def forward(self, x, keep):
        if self.pre:
            x = x + self.drop(self.attention(self.attention_norm(x), keep))
            return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x + self.drop(self.attention(x, keep)))
        return self.feed_forward_norm(x + self.drop(self.feed_forward(x)))


class TextClassifier(nn.Module):
    def __init__(self, config, dtype=torch.float32):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.dim)
        self.position = None
        if config.positions == "learned":
            self.position = nn.Parameter(torch.zeros(config.max_len, config.dim))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_epsilon) if config.norm == "pre" else None
        self.score = nn.Parameter(torch.zeros(config.dim)) if config.pooling == "attention" else None
        self.classifier = nn.Linear(config.dim, config.classes)
        self.to(dtype)
        self.register_buffer("table", sinusoidal(config.max_len, config.dim, dtype), persistent=False)

    def forward(self, ids, lengths):
        """ids [batch, longest] (what lies past a text's length is ignored), lengths [batch] -> [batch, classes]."""
        n = ids.shape[1]
        real = torch.arange(n)[None, :] < lengths[:, None]
        padded = bool((lengths != n).any())
        x = self.embedding(ids)
        if self.config.positions == "learned":
            x = x + self.position[:n]
        elif self.config.positions == "sinusoidal":
            x = x + self.table[:n]
        if self.config.dropout > 0:
            x = F.dropout(x, self.config.dropout, self.training)
        keep = real[:, None, None, :] if padded else None
        if self.config.causal:
            order = torch.ones(n, n, dtype=torch.bool).tril()[None, None]
            keep = order if keep is None else keep & order
        for block in self.blocks:
            x = block(x, keep)
        if self.norm is not None:
            x = self.norm(x)
        return self.classifier(self.pool(x, real, lengths))

    def pool(self, x, real, lengths):
        if self.config.pooling == "first":
            return x[:, 0]
        if self.config.pooling == "max":
            return x.masked_fill(~real[:, :, None], -math.inf).amax(1)
        if self.config.pooling == "attention":
            score = (x @ self.score).masked_fill(~real, -math.inf)
            return (score.softmax(1)[:, :, None] * x).sum(1)
        return (x * real[:, :, None]).sum(1) / lengths[:, None].to(x.dtype)

    def named(self, gradients=False):
        """{Headlight's parameter name: value or gradient}, as windows on this model's own tensors."""
        found = {}

        def add(name, parameter, begin=0, end=None):
            tensor = parameter.grad if gradients else parameter.data
            if tensor is not None:
                found[name] = tensor[begin:end]

        def add_module(name, module, begin=0, end=None):
            add(f"{name}.weight", module.weight, begin, end)
            if getattr(module, "bias", None) is not None:
                add(f"{name}.bias", module.bias, begin, end)

        add_module("embedding.token", self.embedding)
        if self.position is not None:
            add("embedding.position.weight", self.position)
        for index, block in enumerate(self.blocks):
            prefix = f"encoder.{index}."
            attention = block.attention
            inner = attention.projection.out_features // 3
            for slot, name in enumerate(("query", "key", "value")):
                add_module(f"{prefix}attention.{name}", attention.projection, slot * inner, (slot + 1) * inner)
            for name in ("relative_key", "relative_value"):
                table = getattr(attention, name)
                if table is not None:
                    add(f"{prefix}attention.{name}", table)
            if attention.output is not None:
                add_module(f"{prefix}attention.output", attention.output)
            add_module(f"{prefix}attention_norm", block.attention_norm)
            add_module(f"{prefix}feed_forward.up", block.up)
            add_module(f"{prefix}feed_forward.down", block.down)
            add_module(f"{prefix}feed_forward_norm", block.feed_forward_norm)
        if self.norm is not None:
            add_module("norm", self.norm)
        if self.score is not None:
            add("pooling.query", self.score)
        add_module("classifier", self.classifier)
        return found

    @torch.no_grad()
    def load_named(self, values):
        """Copies {Headlight's parameter name: tensor}; the names must be exactly this model's."""
        own = self.named()
        if set(own) != set(values):
            raise ValueError(f"parameter names differ: {sorted(set(own) ^ set(values))}")
        for name, tensor in own.items():
            tensor.copy_(values[name].view(tensor.shape))

    @torch.no_grad()
    def initialise(self, generator):
        """The distributions of headlight/nn/init.h: Xavier-uniform weights, normal embeddings, zero biases."""
        for name, tensor in self.named().items():
            if name.startswith("embedding."):
                tensor.normal_(0.0, 1.0, generator=generator)
            elif "norm" in name:
                tensor.fill_(1.0 if name.endswith("weight") else 0.0)
            elif name.endswith("bias") or name == "pooling.query":
                tensor.zero_()
            elif "relative" in name:
                tensor.normal_(0.0, tensor.shape[2] ** -0.5, generator=generator)
            else:
                bound = math.sqrt(6.0 / (tensor.shape[0] + tensor.shape[1]))
                tensor.uniform_(-bound, bound, generator=generator)
