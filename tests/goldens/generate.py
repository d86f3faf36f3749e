#!/usr/bin/env python3
"""Writes the goldens: what PyTorch computes for Headlight's classifier and for plain attention.

    python3 -m venv V && V/bin/pip install torch==2.15.0 safetensors==0.8.0 numpy
    V/bin/python tests/goldens/generate.py

Everything is computed in f64 from values that f32 represents exactly, on one thread; the versions go into each file's
metadata. Goldens are facts to meet: they are never written again to make a test pass.
"""

import dataclasses
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench" / "peers" / "train_classifier"))
from torch_classifier import Config, TextClassifier  # noqa: E402

STEPS = 10
LEARNING_RATE = 0.003
LENGTHS = (1, 7, 4, 12, 3, 9)
TINY = {"vocabulary": 23, "max_len": 12, "dim": 8, "layers": 2, "heads": 2, "feed_forward": 12, "classes": 3}
# name -> (the model's choices, the training's choices)
CLASSIFIERS = {
    "post_relu_mean_sinusoidal": ({}, {}),
    "pre_gelu_mean_learned": (
        {"norm": "pre", "activation": "gelu", "positions": "learned"}, {"label_smoothing": 0.1}),
    "post_gelu_first_none": (
        {"activation": "gelu", "pooling": "first", "positions": "none"}, {"weight_decay": 0.05}),
    "pre_relu_max_causal_bare": (
        {"norm": "pre", "pooling": "max", "causal": True, "heads": 1, "projection_bias": False,
         "output_projection": False}, {}),
    "post_relu_attention_wide_heads": (
        {"pooling": "attention", "heads": 3, "head_dim": 5, "scale": "fourth-root"}, {}),
    "pre_gelu_mean_relative": (
        {"norm": "pre", "activation": "gelu", "positions": "relative", "relative_distance": 4,
         "relative_values": True}, {}),
}


def metadata(**settings):
    """One entry, since the order of several would differ from run to run."""
    return {"settings": json.dumps({"torch": torch.__version__, **settings}, sort_keys=True)}


def draw_exact(model, generator):
    """Random values for every parameter, norms and biases too, rounded to f32 so that both precisions start equal."""
    model.initialise(generator)
    with torch.no_grad():
        for name, tensor in model.named().items():
            if "norm" in name or name.endswith("bias") or name == "pooling.query":
                tensor.add_(0.3 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))
            tensor.copy_(tensor.float().double())


def padded(texts, fill):
    ids = torch.full((len(texts), max(LENGTHS)), fill)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
    return ids


def classifier_golden(name, choices, training):
    config = Config(**{**TINY, **choices})
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    model = TextClassifier(config, torch.float64)
    draw_exact(model, generator)
    texts = [torch.randint(0, config.vocabulary, (n,), generator=generator) for n in LENGTHS]
    labels = torch.randint(0, config.classes, (len(LENGTHS),), generator=generator)
    ids, lengths = padded(texts, fill=1), torch.tensor(LENGTHS)
    smoothing, decay = training.get("label_smoothing", 0.0), training.get("weight_decay", 0.0)

    tensors = {
        "ids": torch.cat(texts).int(), "labels": labels.int(),
        "offsets": F.pad(lengths.cumsum(0), (1, 0)),
    }
    tensors.update({f"initial.{key}": value.float() for key, value in model.named().items()})
    logits = model(ids, lengths)
    # What lies in the padding must not matter.
    torch.testing.assert_close(model(padded(texts, fill=7), lengths), logits, rtol=0, atol=1e-12)
    tensors["logits"] = logits.detach().clone()

    decayed, kept = [], []
    for key, parameter in model.named_parameters():
        (kept if "norm" in key or key.endswith("bias") else decayed).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": decay}, {"params": kept, "weight_decay": 0.0}], lr=LEARNING_RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids, lengths), labels, label_smoothing=smoothing)
        loss.backward()
        losses.append(loss.detach())
        if step == 0:
            tensors.update({f"gradient.{key}": value.clone() for key, value in model.named(gradients=True).items()})
        optimizer.step()
    tensors["losses"] = torch.stack(losses)
    tensors.update({f"final.{key}": value.clone() for key, value in model.named().items()})
    settings = {"label_smoothing": smoothing, "weight_decay": decay, "learning_rate": LEARNING_RATE, "steps": STEPS}
    save_file({key: value.contiguous() for key, value in tensors.items()},
              HERE / f"classifier_{name}.safetensors", metadata(**settings, config=dataclasses.asdict(config)))


def attention_golden():
    """Plain attention, [batch, heads, len, head_dim]: every case is one group `case.tensor` of one file."""
    generator = torch.Generator().manual_seed(11)
    cases = {
        # name: (batch, heads, kv_heads, query_len, key_len, head_dim, value_dim, scale, mask)
        "none": (2, 2, 2, 9, 9, 8, 8, None, None),
        "one_key": (1, 2, 2, 3, 1, 4, 4, None, None),
        "cross": (2, 2, 2, 5, 19, 16, 16, None, None),
        "causal_end": (1, 2, 2, 5, 11, 8, 8, None, "causal_end"),
        "causal_start": (1, 2, 2, 11, 11, 8, 8, None, "causal_start"),
        "lengths": (3, 2, 2, 7, 13, 8, 8, None, "lengths"),
        "keep": (2, 2, 2, 6, 10, 8, 8, None, "keep"),
        "window": (1, 2, 2, 17, 17, 8, 8, None, "window"),
        "grouped": (1, 4, 2, 6, 6, 8, 8, None, None),
        "scale_given": (1, 2, 2, 6, 6, 8, 8, 0.75, None),
        "wide_heads": (1, 1, 1, 17, 19, 64, 64, None, None),
        "value_dim": (1, 2, 2, 5, 7, 8, 12, None, None),
        "prime": (1, 1, 1, 31, 67, 13, 13, None, None),
        "large_scores": (1, 2, 2, 9, 9, 8, 8, 40.0, None),
    }
    tensors, settings = {}, {}
    for name, (batch, heads, kv_heads, query_len, key_len, dim, value_dim, scale, mask) in cases.items():
        def draw(*shape):
            return torch.randn(shape, generator=generator).double().requires_grad_()

        query, key = draw(batch, heads, query_len, dim), draw(batch, kv_heads, key_len, dim)
        value = draw(batch, kv_heads, key_len, value_dim)
        rows, columns = torch.arange(query_len)[:, None], torch.arange(key_len)[None, :]
        keep = None
        if mask == "causal_end":
            keep = columns <= rows + (key_len - query_len)
        elif mask == "causal_start":
            keep = columns <= rows
        elif mask == "lengths":
            lengths = torch.tensor([13, 1, 6])
            keep = (columns < lengths[:, None, None])[:, None].expand(batch, 1, query_len, key_len)
            tensors[f"{name}.lengths"] = lengths
        elif mask == "keep":
            keep = torch.rand(query_len, key_len, generator=generator) < 0.5
            keep[:, 3] = True  # every row has something to attend to
            tensors[f"{name}.keep"] = keep.to(torch.uint8)
        elif mask == "window":
            keep = (columns >= rows - 3) & (columns <= rows + 2)
        used = scale if scale is not None else dim ** -0.5
        out = F.scaled_dot_product_attention(
            query, key.repeat_interleave(heads // kv_heads, 1), value.repeat_interleave(heads // kv_heads, 1),
            attn_mask=keep, scale=used)
        scores = used * query @ key.repeat_interleave(heads // kv_heads, 1).transpose(2, 3)
        if keep is not None:
            scores = scores.masked_fill(~keep, -torch.inf)
        upstream = draw(*out.shape).detach()
        out.backward(upstream)
        found = {"query": query, "key": key, "value": value, "out": out, "lse": scores.logsumexp(-1),
                 "out_gradient": upstream, "query_gradient": query.grad, "key_gradient": key.grad,
                 "value_gradient": value.grad}
        for tensor_name, tensor in found.items():
            inputs = ("query", "key", "value", "out_gradient")
            tensors[f"{name}.{tensor_name}"] = tensor.detach().float() if tensor_name in inputs else tensor.detach()
        settings[name] = {"mask": mask or "none", "scale": scale}
    save_file({key: value.contiguous() for key, value in tensors.items()}, HERE / "attention.safetensors",
              metadata(cases=settings))


def main():
    torch.set_num_threads(1)
    for name, (choices, training) in CLASSIFIERS.items():
        classifier_golden(name, choices, training)
    attention_golden()
    for path in sorted(HERE.glob("*.safetensors")):
        print(f"{path.stat().st_size:8d}  {path.name}")


if __name__ == "__main__":
    main()
