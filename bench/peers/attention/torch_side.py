"""PyTorch's side: scaled_dot_product_attention, the same written out, FlexAttention compiled, and the graph of the
oneDNN inside PyTorch, reached through TorchScript.

Inputs lie as [batch, heads, length, width], as PyTorch wants them. Masks are made beforehand.
"""

import functools
import warnings
from typing import Optional

import torch
import torch.nn.functional as F
from side import Method, keep, serve
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def plain(query, key, value, scale, mask, groups):
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = (query @ key.transpose(2, 3)) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


def compiled_flex(shape, query, key, value, groups):
    torch._dynamo.reset()  # one compiled variant per shape
    block_mask = None
    if keep(shape) is not None:
        left, right = shape.get("window", (shape["keys"], shape["keys"]))
        right = 0 if shape["causal"] else right
        first, key_length = shape["first"], shape["key_length"]

        def kept(_batch, _head, query_at, key_at):
            at = query_at + first
            return (key_at >= at - left) & (key_at <= at + right) & (key_at < key_length)

        block_mask = create_block_mask(kept, None, None, shape["queries"], shape["keys"], device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: compiled(query, key, value, block_mask=block_mask, enable_gqa=groups > 1)


class Graph(torch.nn.Module):
    """Attention as oneDNN's graph knows it."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key, value, mask: Optional[torch.Tensor] = None):
        scores = torch.matmul(query, key.transpose(2, 3)) / self.scale
        if mask is not None:
            scores = scores + mask
        return torch.matmul(torch.softmax(scores, -1), value)


def onednn_graph(shape, query, key, value, kept):
    if shape["heads"] != shape["kv_heads"]:
        raise ValueError("is written for as many key/value heads as heads")
    warnings.simplefilter("ignore", FutureWarning)  # TorchScript will go; until then it is the way to this graph
    torch.jit.enable_onednn_fusion(True)
    inputs = [query, key, value]
    if kept is not None:
        inputs.append(torch.zeros(kept.shape, dtype=query.dtype).masked_fill(~kept, float("-inf"))[None, None])
    with torch.inference_mode():
        traced = torch.jit.freeze(torch.jit.trace(Graph(shape["head_dim"] ** 0.5).eval(), tuple(inputs)))
        for _ in range(3):  # it profiles, then fuses
            traced(*inputs)
        if "oneDNNFusionGroup" not in str(torch.jit.last_executed_optimized_graph()):
            raise ValueError("is not fused")
    return lambda: traced(*inputs)


def forward(run):
    def inference():
        with torch.inference_mode():
            return run()

    return Method(inference, lambda out: {"out": out.transpose(1, 2).float().numpy()})


def backward(run, inputs, gradient):
    for tensor in inputs:
        tensor.requires_grad_(True)
    out = run()
    names = ("query_gradient", "key_gradient", "value_gradient")
    return Method(lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True),
                  lambda grads: {name: grad.transpose(1, 2).float().numpy() for name, grad in zip(names, grads)})


def methods(shape, tensors, threads):
    torch.set_num_threads(threads)
    made, refused = {}, {}
    dtype = torch.bfloat16 if shape["bf16"] else torch.float32

    def own(name):
        return torch.from_numpy(tensors[name]).transpose(1, 2).to(dtype).contiguous()

    query, key, value = own("query"), own("key"), own("value")
    kept = keep(shape)
    mask = None if kept is None else torch.from_numpy(kept)
    causal_only = shape["causal"] and "window" not in shape and shape["queries"] == shape["keys"] == shape["key_length"]
    groups = shape["heads"] // shape["kv_heads"]
    sdpa = functools.partial(
        F.scaled_dot_product_attention, query, key, value, enable_gqa=groups > 1,
        **({"is_causal": True} if causal_only else {"attn_mask": mask}))
    written_out = functools.partial(plain, query, key, value, shape["head_dim"] ** -0.5, mask, groups)
    if shape["backward"]:
        gradient = own("out_gradient")
        made["scaled_dot_product_attention"] = backward(sdpa, (query, key, value), gradient)
        made["written out"] = backward(written_out, (query, key, value), gradient)
        refused |= {"FlexAttention": "no backward pass on a CPU", "oneDNN's graph": "no backward pass of the whole"}
        return made, refused
    made["scaled_dot_product_attention"] = forward(sdpa)
    made["written out"] = forward(written_out)
    for name, make in (("FlexAttention", lambda: compiled_flex(shape, query, key, value, groups)),
                       ("oneDNN's graph", lambda: onednn_graph(shape, query, key, value, mask))):
        try:
            made[name] = forward(make())
        except Exception as error:  # pylint: disable=broad-except
            refused[name] = " ".join(str(error).split())[:200]
    return made, refused


if __name__ == "__main__":
    serve(f"PyTorch {torch.__version__}", methods)
