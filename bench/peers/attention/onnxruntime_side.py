"""ONNX Runtime's side: MultiHeadAttention, GroupQueryAttention, the Attention operator of ONNX, and the unfused graph.

Each method has the layout that its operator wants, and inputs and outputs bound once.
"""

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper
from side import Method, keep, serve

MICROSOFT = "com.microsoft"


class Graph:
    """Nodes and the arrays that they start from."""

    def __init__(self):
        self.nodes, self.inputs, self.constants = [], {}, {}

    def node(self, kind, inputs, outputs=("out",), domain="", **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), list(outputs), domain=domain, **attributes))

    def session(self, outputs, threads):
        def info(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

        graph = helper.make_graph(
            self.nodes, "attention", [info(name, array) for name, array in self.inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)], ir_version=11)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])

    def method(self, threads, layout, shared=()):
        """`shared`: (input, output) pairs that are one buffer."""
        session = self.session(["out", *(output for _, output in shared)], threads)
        binding = session.io_binding()
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in self.inputs.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        for source, output in shared:
            binding.bind_ortvalue_output(output, values[source])
        binding.bind_output("out", "cpu")

        def run():
            session.run_with_iobinding(binding)
            return binding

        run.values = values  # which must outlive the binding
        return Method(run, lambda bound: {"out": layout(bound.get_outputs()[-1 if shared else 0].numpy())})


def joined(array):
    """[batch, length, heads, width] -> [batch, length, heads * width]."""
    return numpy.ascontiguousarray(array.reshape(*array.shape[:2], -1))


def heads_first(array):
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3))


def multi_head(shape, tensors, kept):
    if shape["heads"] != shape["kv_heads"]:
        raise ValueError("has as many key/value heads as heads")
    graph = Graph()
    graph.inputs = {name: joined(tensors[name]) for name in ("query", "key", "value")}
    names = ["query", "key", "value"]
    causal_only = shape["causal"] and "window" not in shape and shape["key_length"] == shape["keys"] == shape["queries"]
    if kept is not None and not causal_only:
        graph.inputs["bias"] = numpy.where(kept, 0, numpy.float32(-1e30))[None, None].astype(numpy.float32)
        names += ["", "", "bias"]
    graph.node("MultiHeadAttention", names, domain=MICROSOFT, num_heads=shape["heads"],
               unidirectional=int(causal_only))
    return graph, ()


def group_query(shape, tensors, kept):
    """A query sees the keys up to its own place, in a cache of all of them; a window only to the left."""
    queries, keys, batch = shape["queries"], shape["keys"], shape["batch"]
    places = numpy.arange(keys)[None, :] - (numpy.arange(queries)[:, None] + keys - queries)
    left = shape["window"][0] if "window" in shape else keys
    does = (places <= 0) & (places >= -left)
    if not numpy.array_equal(does, numpy.ones_like(does) if kept is None else kept):
        raise ValueError("is causal, to the end")
    if shape["head_dim"] != shape["value_dim"]:
        raise ValueError("has one width for queries and values")
    graph = Graph()
    new = slice(keys - queries, keys)
    graph.inputs = {"query": joined(tensors["query"]), "key": joined(tensors["key"][:, new]),
                    "value": joined(tensors["value"][:, new]),
                    "last": numpy.full(batch, keys - 1, numpy.int32), "total": numpy.array([keys], numpy.int32)}
    cached = queries < keys
    if cached:
        graph.inputs |= {"past_key": heads_first(tensors["key"]), "past_value": heads_first(tensors["value"])}
    graph.node("GroupQueryAttention",
               ["query", "key", "value", *(["past_key", "past_value"] if cached else ["", ""]), "last", "total"],
               ["out", "present_key", "present_value"], domain=MICROSOFT, num_heads=shape["heads"],
               kv_num_heads=shape["kv_heads"], local_window_size=left + 1 if "window" in shape else -1)
    return graph, (("past_key", "present_key"), ("past_value", "present_value")) if cached else ()


def attention(shape, tensors, kept):
    graph = Graph()
    graph.inputs = {name: heads_first(tensors[name]) for name in ("query", "key", "value")}
    names = ["query", "key", "value"]
    if kept is not None:
        graph.inputs["mask"] = kept
        names.append("mask")
    graph.node("Attention", names)
    return graph, ()


def unfused(shape, tensors, kept):
    if shape["heads"] != shape["kv_heads"]:
        raise ValueError("is written for as many key/value heads as heads")
    graph = Graph()
    graph.inputs = {name: heads_first(tensors[name]) for name in ("query", "key", "value")}
    graph.constants["scale"] = numpy.float32(shape["head_dim"] ** -0.5)
    graph.node("Transpose", ["key"], ["turned"], perm=[0, 1, 3, 2])
    graph.node("MatMul", ["query", "turned"], ["products"])
    graph.node("Mul", ["products", "scale"], ["scores"])
    scores = "scores"
    if kept is not None:
        graph.inputs["bias"] = numpy.where(kept, 0, numpy.float32(-1e30))[None, None].astype(numpy.float32)
        graph.node("Add", ["scores", "bias"], ["masked"])
        scores = "masked"
    graph.node("Softmax", [scores], ["weights"], axis=-1)
    graph.node("MatMul", ["weights", "value"])
    return graph, ()


def split(shape):
    return lambda out: out.reshape(*out.shape[:2], shape["heads"], shape["value_dim"])


def methods(shape, tensors, threads):
    kinds = {"MultiHeadAttention": (multi_head, split(shape)), "GroupQueryAttention": (group_query, split(shape)),
             "Attention": (attention, lambda out: out.transpose(0, 2, 1, 3)),
             "unfused": (unfused, lambda out: out.transpose(0, 2, 1, 3))}
    if shape["backward"] or shape["bf16"]:
        why = "no backward pass" if shape["backward"] else "no products of bf16 on a CPU"
        return {}, {name: why for name in kinds}
    made, refused = {}, {}
    kept = keep(shape)
    for name, (make, layout) in kinds.items():
        try:
            graph, shared = make(shape, tensors, kept)
            made[name] = graph.method(threads, layout, shared)
        except Exception as error:  # pylint: disable=broad-except
            refused[name] = " ".join(str(error).split())[:200]
    return made, refused


if __name__ == "__main__":
    serve(f"ONNX Runtime {onnxruntime.__version__}", methods)
