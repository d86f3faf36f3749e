"""Says how far the outputs of the others are from attention written out in double precision with NumPy.

  {"ask": "reference", "path": F}     the inputs; keeps the reference of their shape
  {"ask": "check", "path": F}         outputs; the largest difference, over the reference's largest magnitude
"""

import json
import sys

import numpy
from safetensors.numpy import load_file
from side import flat, keep, read


def one(shape, kept, query, key, value, gradient):
    """One head of one sequence: out, or the gradients of query, key and value."""
    scale = shape["head_dim"] ** -0.5
    scores = query @ key.T * scale
    if kept is not None:
        scores = numpy.where(kept, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    if gradient is None:
        return (weights @ value,)
    weights_gradient = gradient @ value.T
    scores_gradient = weights * (weights_gradient - (weights * weights_gradient).sum(-1, keepdims=True)) * scale
    return scores_gradient @ key, scores_gradient.T @ query, weights.T @ gradient


def reference(path):
    shape, tensors = read(path)
    kept = keep(shape)
    tensors = {name: value.astype(numpy.float64) for name, value in tensors.items()}
    groups = shape["heads"] // shape["kv_heads"]
    results = {}
    if shape["backward"]:
        names = ("query_gradient", "key_gradient", "value_gradient")
        likes = ("query", "key", "value")
        results = {name: numpy.zeros_like(tensors[like]) for name, like in zip(names, likes)}
    else:
        names = ("out",)
        results["out"] = numpy.zeros((*tensors["query"].shape[:3], shape["value_dim"]))
    for sequence in range(shape["batch"]):
        for head in range(shape["heads"]):
            own, shared = (sequence, slice(None), head), (sequence, slice(None), head // groups)
            gradient = tensors["out_gradient"][own] if shape["backward"] else None
            made = one(shape, kept, tensors["query"][own], tensors["key"][shared], tensors["value"][shared], gradient)
            for name, array in zip(names, made):
                results[name][shared if name in ("key_gradient", "value_gradient") else own] += array
    return {name: flat(array) for name, array in results.items()}


def difference(outputs, expected):
    worst = 0.0
    for name, array in expected.items():
        if outputs[name].shape != array.shape:
            raise SystemExit(f"{name}: shape must be {array.shape}, found {outputs[name].shape}")
        apart = numpy.abs(outputs[name] - array).max() / numpy.abs(array).max()
        worst = max(worst, float(apart)) if numpy.isfinite(apart) else float("inf")
    return worst


def main():
    print(json.dumps({"ready": f"NumPy {numpy.__version__}"}), flush=True)
    expected = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["ask"] == "reference":
            expected = reference(request["path"])
            print("{}", flush=True)
        else:
            print(json.dumps({"difference": difference(load_file(request["path"]), expected)}), flush=True)


if __name__ == "__main__":
    main()
