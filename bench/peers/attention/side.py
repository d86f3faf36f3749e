"""What the Python sides share: the protocol (headlight_attention.cc states it), and which keys a query may look at.

A side gives methods(shape, tensors, threads): a dict of name -> function, and a dict of name -> why there is none. A
function takes nothing and returns {"out": array [batch, queries, heads, value_dim]}, or for a backward pass the
gradients of query, key and value, through `layout` (which is not timed).
"""

import dataclasses
import json
import sys
import time
from typing import Any, Callable

import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


@dataclasses.dataclass
class Method:
    run: Callable[[], Any]  # one pass; what is timed
    outputs: Callable[[Any], dict]  # what it returned -> arrays in Headlight's layout, by name


def read(path):
    """The shape and its inputs, [batch, length, heads, width] each."""
    with safe_open(path, "numpy") as file:
        shape = json.loads(file.metadata()["shape"])
    tensors = {name: value.reshape(shape["batch"], -1, *value.shape[1:]) for name, value in load_file(path).items()}
    return shape, tensors


def keep(shape):
    """bool [queries, keys]: the keys that a query may look at; None: all."""
    if not shape["causal"] and "window" not in shape and shape["key_length"] == shape["keys"]:
        return None
    query = numpy.arange(shape["queries"])[:, None] + shape["first"]
    key = numpy.arange(shape["keys"])[None, :]
    kept = numpy.broadcast_to(key < shape["key_length"], (shape["queries"], shape["keys"])).copy()
    if shape["causal"]:
        kept &= key <= query
    if "window" in shape:
        left, right = shape["window"]
        kept &= (key >= query - left) & (key <= query + right)
    return None if kept.all() else kept


def flat(array):
    """[batch, length, heads, width] as Headlight has it: [tokens, heads, width]."""
    return numpy.ascontiguousarray(array.reshape(-1, *array.shape[2:]))


class Server:
    def __init__(self, methods):
        self.make = methods
        self.methods, self.last = {}, {}

    def load(self, request):
        self.methods, self.last = {}, {}  # before the next are made: memory
        shape, tensors = read(request["path"])
        made, refused = self.make(shape, tensors, request["threads"])
        for name, method in made.items():
            try:
                self.last[name] = method.run()
                self.methods[name] = method
            except Exception as error:  # pylint: disable=broad-except  # whatever a library throws is its refusal
                refused[name] = " ".join(str(error).split())[:200]
        return {"methods": list(self.methods), "refused": refused}

    def warm(self, request):
        run = self.methods[request["method"]].run
        run()
        began = time.perf_counter()
        run()
        return {"calls": max(1, int(request["seconds"] / max(time.perf_counter() - began, 1e-9) + 1))}

    def run(self, request):
        run = self.methods[request["method"]].run
        began = time.perf_counter()
        for _ in range(request["calls"]):
            last = run()
        seconds = time.perf_counter() - began
        self.last[request["method"]] = last
        return {"seconds": seconds / request["calls"]}

    def save(self, request):
        name = request["method"]
        arrays = self.methods[name].outputs(self.last[name])
        save_file({key: flat(numpy.asarray(value)) for key, value in arrays.items()}, request["path"])
        return {"written": request["path"]}


def serve(ready, methods):
    server = Server(methods)
    print(json.dumps({"ready": ready}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(server, request["ask"])(request)), flush=True)
