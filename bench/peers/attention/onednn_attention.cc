// oneDNN's side of the comparison of attention: the graph that it fuses, and matrix products with a
// softmax between them. Heads that share a key/value head become more queries of it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#if DNNL_VERSION_MAJOR >= 3
#include <oneapi/dnnl/dnnl_graph.hpp>
#endif

#include "bench/peers/attention/attention_server.h"

namespace headlight::peers {
namespace {

using Memory = dnnl::memory;
using Dims = Memory::dims;
using Type = Memory::data_type;

// Batch and key/value heads, queries (of all heads of a group), keys, widths.
struct Sizes {
  int64_t batch, kv_heads, groups, queries, keys, width, value_width;

  Dims QueryDims() const { return {batch, kv_heads, groups * queries, width}; }
  Dims KeyDims() const { return {batch, kv_heads, keys, width}; }
  Dims ValueDims() const { return {batch, kv_heads, keys, value_width}; }
  Dims ScoreDims() const { return {batch, kv_heads, groups * queries, keys}; }
  Dims OutDims() const { return {batch, kv_heads, groups * queries, value_width}; }
  Dims MaskDims() const { return {1, 1, queries, keys}; }
};

// [tokens, heads, width] -> [batch, kv_heads, group, length, width], or back.
std::vector<float> HeadsFirst(const float* from, int64_t batch, int64_t heads, int64_t length,
                              int64_t width, bool back) {
  std::vector<float> to(static_cast<size_t>(batch * heads * length * width));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t tokens_at = ((b * length + i) * heads + h) * width;
        const int64_t heads_at = ((b * heads + h) * length + i) * width;
        std::copy_n(from + (back ? heads_at : tokens_at), width,
                    to.data() + (back ? tokens_at : heads_at));
      }
    }
  }
  return to;
}

// 0 for a key that a query may look at, else -inf: [queries, keys].
std::vector<float> MaskOf(const AttentionShape& shape, const Json& described) {
  const int64_t queries = shape.Queries(), keys = shape.keys;
  const int64_t first = described.at("first"), key_length = described.at("key_length");
  std::vector<float> mask;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t at = i + first;
      const bool kept =
          j < key_length && (shape.causal == Mask::Causal::kNone || j <= at) &&
          (!shape.window || (at - shape.window->left <= j && j <= at + shape.window->right));
      mask.push_back(kept ? 0 : -std::numeric_limits<float>::infinity());
    }
  }
  return mask;
}

struct Data {
  Sizes sizes;
  float scale = 1;
  std::vector<float> query, key, value;
  std::vector<float> mask;  // empty: none
};

class Engine {
 public:
  Engine() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {}

  // Filled with `from` unless that is empty.
  Memory Make(const Memory::desc& desc, const std::vector<float>& from = {}) {
    Memory memory(desc, engine);
    if (!from.empty()) {
      void* mapped = memory.map_data();
      std::memcpy(mapped, from.data(), from.size() * sizeof(float));
      memory.unmap_data(mapped);
    }
    return memory;
  }

  dnnl::engine engine;
  dnnl::stream stream;
};

std::vector<float> Read(const Memory& memory) {
  std::vector<float> values(memory.get_desc().get_size() / sizeof(float));
  void* mapped = memory.map_data();
  std::memcpy(values.data(), mapped, values.size() * sizeof(float));
  memory.unmap_data(mapped);
  return values;
}

std::map<std::string, Tensor> OutTensor(const Sizes& sizes, const std::vector<float>& out) {
  const int64_t heads = sizes.kv_heads * sizes.groups;
  const std::vector<float> tokens =
      HeadsFirst(out.data(), sizes.batch, heads, sizes.queries, sizes.value_width, true);
  Tensor tensor = Tensor::Uninitialized({sizes.batch * sizes.queries, heads, sizes.value_width},
                                        DType::kF32, MemoryTag::kOther);
  std::copy(tokens.begin(), tokens.end(), tensor.data<float>());
  return {{"out", tensor}};
}

#if DNNL_VERSION_MAJOR >= 3
dnnl::matmul Product(const dnnl::engine& engine, const Memory::desc& left,
                     const Memory::desc& right, const Memory::desc& to,
                     const dnnl::primitive_attr& attributes = {}) {
  return dnnl::matmul({engine, left, right, to, attributes});
}

dnnl::softmax_forward Softmax(const dnnl::engine& engine, const Memory::desc& scores) {
  return dnnl::softmax_forward({engine, dnnl::prop_kind::forward_inference,
                                dnnl::algorithm::softmax_accurate, scores, scores, 3});
}

void AppendScale(dnnl::post_ops& after, float scale) {
  after.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
}

dnnl::binary Add(const dnnl::engine& engine, const Memory::desc& scores, const Memory::desc& mask) {
  return dnnl::binary({engine, dnnl::algorithm::binary_add, scores, mask, scores});
}
#else
dnnl::matmul Product(const dnnl::engine& engine, const Memory::desc& left,
                     const Memory::desc& right, const Memory::desc& to,
                     const dnnl::primitive_attr& attributes = {}) {
  return dnnl::matmul({{left, right, to}, attributes, engine});
}

dnnl::softmax_forward Softmax(const dnnl::engine& engine, const Memory::desc& scores) {
  return dnnl::softmax_forward({{dnnl::prop_kind::forward_inference, scores, 3}, engine});
}

void AppendScale(dnnl::post_ops& after, float scale) {
  after.append_eltwise(1, dnnl::algorithm::eltwise_linear, scale, 0);
}

dnnl::binary Add(const dnnl::engine& engine, const Memory::desc& scores, const Memory::desc& mask) {
  return dnnl::binary({{dnnl::algorithm::binary_add, scores, mask, scores}, engine});
}
#endif

Method Primitives(const std::shared_ptr<Engine>& engine, const Data& data) {
  const Sizes& sizes = data.sizes;
  using Tag = Memory::format_tag;
  const Memory::desc scores({sizes.ScoreDims(), Type::f32, Tag::abcd});
  const Memory::desc query(sizes.QueryDims(), Type::f32, Tag::abcd);
  Dims turned = sizes.KeyDims();
  std::swap(turned[2], turned[3]);
  const Memory::desc key(turned, Type::f32, Tag::abdc);
  const Memory::desc value(sizes.ValueDims(), Type::f32, Tag::abcd);
  const Memory::desc out(sizes.OutDims(), Type::f32, Tag::abcd);
  const Memory::desc mask(sizes.MaskDims(), Type::f32, Tag::abcd);

  dnnl::post_ops after;
  AppendScale(after, data.scale);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const dnnl::matmul first = Product(engine->engine, query, key, scores, attributes);
  const dnnl::softmax_forward softmax = Softmax(engine->engine, scores);
  const dnnl::matmul second = Product(engine->engine, scores, value, out);

  const Memory weights = engine->Make(scores), result = engine->Make(out);
  const std::unordered_map<int, Memory> first_arguments = {
      {DNNL_ARG_SRC, engine->Make(query, data.query)},
      {DNNL_ARG_WEIGHTS, engine->Make(key, data.key)},
      {DNNL_ARG_DST, weights}};
  // A step of its own: as a post-op of the product, 2.6 computes it a thousand times slower.
  std::optional<dnnl::binary> add;
  std::unordered_map<int, Memory> add_arguments;
  if (!data.mask.empty()) {
    add = Add(engine->engine, scores, mask);
    add_arguments = {{DNNL_ARG_SRC_0, weights},
                     {DNNL_ARG_SRC_1, engine->Make(mask, data.mask)},
                     {DNNL_ARG_DST, weights}};
  }
  const std::unordered_map<int, Memory> softmax_arguments = {{DNNL_ARG_SRC, weights},
                                                             {DNNL_ARG_DST, weights}};
  const std::unordered_map<int, Memory> second_arguments = {
      {DNNL_ARG_SRC, weights},
      {DNNL_ARG_WEIGHTS, engine->Make(value, data.value)},
      {DNNL_ARG_DST, result}};
  return {[=] {
            first.execute(engine->stream, first_arguments);
            if (add) add->execute(engine->stream, add_arguments);
            softmax.execute(engine->stream, softmax_arguments);
            second.execute(engine->stream, second_arguments);
            engine->stream.wait();
          },
          [=, sizes = data.sizes] { return OutTensor(sizes, Read(result)); }};
}

#if DNNL_VERSION_MAJOR >= 3
// The graph of attention in the form that oneDNN documents as fused ("Scaled Dot-Product
// Attention").
class FusedGraph {
 public:
  FusedGraph(const std::shared_ptr<Engine>& engine, const Data& data) : engine_(engine) {
    namespace g = dnnl::graph;
    const Sizes& sizes = data.sizes;
    const g::logical_tensor query = Named(sizes.QueryDims()), key = Named(sizes.KeyDims()),
                            value = Named(sizes.ValueDims()), scale = Named({1}),
                            products = Named(sizes.ScoreDims()), scaled = Named(sizes.ScoreDims()),
                            mask = Named(sizes.MaskDims()), masked = Named(sizes.ScoreDims()),
                            weights = Named(sizes.ScoreDims()), out = Named(sizes.OutDims());
    const bool has_mask = !data.mask.empty();
    g::op first(0, g::op::kind::MatMul, {query, key}, {products}, "query_key");
    first.set_attr<bool>(g::op::attr::transpose_b, true);
    g::op multiply(1, g::op::kind::Multiply, {products, scale}, {scaled}, "scale");
    g::op add(2, g::op::kind::Add, {scaled, mask}, {masked}, "mask");
    g::op softmax(3, g::op::kind::SoftMax, {has_mask ? masked : scaled}, {weights}, "softmax");
    softmax.set_attr<int64_t>(g::op::attr::axis, -1);
    g::op second(4, g::op::kind::MatMul, {weights, value}, {out}, "weights_value");
    g::graph graph(dnnl::engine::kind::cpu);
    graph.add_op(first);
    graph.add_op(multiply);
    if (has_mask) graph.add_op(add);
    graph.add_op(softmax);
    graph.add_op(second);
    graph.finalize();
    const std::vector<g::partition> partitions = graph.get_partitions();
    if (partitions.size() != 1 || !partitions[0].is_supported()) {
      throw Error(ErrorKind::kUsage, "is cut into {} partitions, not fused", partitions.size());
    }
    std::vector<g::logical_tensor> inputs = partitions[0].get_input_ports();
    std::vector<g::logical_tensor> outputs = {out};
    compiled_ = partitions[0].compile(inputs, outputs, engine->engine);
    for (const g::logical_tensor& input : inputs) {
      const auto is = [&](const g::logical_tensor& other) {
        return input.get_id() == other.get_id();
      };
      inputs_.push_back(Fill(input, is(query)   ? data.query
                                    : is(key)   ? data.key
                                    : is(value) ? data.value
                                    : is(mask)  ? data.mask
                                                : std::vector<float>{data.scale}));
    }
    result_ = engine->Make({sizes.OutDims(), Type::f32, Memory::format_tag::abcd});
    outputs_.emplace_back(out, engine->engine, result_.get_data_handle());
  }

  void Run() {
    compiled_.execute(engine_->stream, inputs_, outputs_);
    engine_->stream.wait();
  }
  std::vector<float> Result() const { return Read(result_); }

 private:
  dnnl::graph::logical_tensor Named(const Dims& dims) {
    return {next_id_++, dnnl::graph::logical_tensor::data_type::f32, dims,
            dnnl::graph::logical_tensor::layout_type::strided};
  }

  dnnl::graph::tensor Fill(const dnnl::graph::logical_tensor& like,
                           const std::vector<float>& values) {
    memories_.push_back(engine_->Make(
        {{static_cast<int64_t>(values.size())}, Type::f32, Memory::format_tag::a}, values));
    return {like, engine_->engine, memories_.back().get_data_handle()};
  }

  std::shared_ptr<Engine> engine_;
  size_t next_id_ = 0;
  std::vector<Memory> memories_;
  Memory result_;
  dnnl::graph::compiled_partition compiled_;
  std::vector<dnnl::graph::tensor> inputs_, outputs_;
};
#endif

class OneDnnServer : public AttentionServer {
  Methods Load(const AttentionShape& shape, const Json& described, Safetensors inputs,
               int) override {
    Methods loaded;
    const auto refuse = [&](const std::string& why) {
      loaded.refused = {{"all", why}};
      return loaded;
    };
    if (shape.backward) return refuse("no backward pass of the whole");
    if (shape.precision != Precision::kF32) return refuse("is written for f32");
    Data data;
    Sizes& sizes = data.sizes;
    sizes = {shape.batch,     shape.KvHeads(), shape.heads / shape.KvHeads(),
             shape.Queries(), shape.keys,      shape.head_dim,
             shape.ValueDim()};
    data.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
    data.mask = MaskOf(shape, described);
    if (std::count(data.mask.begin(), data.mask.end(), 0.0f) ==
        static_cast<int64_t>(data.mask.size())) {
      data.mask.clear();
    }
    if (!data.mask.empty() && sizes.groups > 1) return refuse("masks need a key head per head");
    const auto heads_first = [&](const char* name, int64_t heads, int64_t length, int64_t width) {
      return HeadsFirst(inputs.tensors.at(name).data<float>(), sizes.batch, heads, length, width,
                        false);
    };
    data.query = heads_first("query", shape.heads, sizes.queries, sizes.width);
    data.key = heads_first("key", sizes.kv_heads, sizes.keys, sizes.width);
    data.value = heads_first("value", sizes.kv_heads, sizes.keys, sizes.value_width);
    const auto attempt = [&](const char* name, const std::function<Method()>& make) {
      try {
        loaded.methods[name] = make();
      } catch (const std::exception& error) {
        loaded.methods.erase(name);
        loaded.refused[name] = error.what();
      }
    };
    attempt("primitives", [&] { return Primitives(engine_, data); });
#if DNNL_VERSION_MAJOR >= 3
    attempt("graph", [&]() -> Method {
      const auto graph = std::make_shared<FusedGraph>(engine_, data);
      return {[graph] { graph->Run(); },
              [graph, sizes] { return OutTensor(sizes, graph->Result()); }};
    });
#endif
    return loaded;
  }

  const std::shared_ptr<Engine> engine_ = std::make_shared<Engine>();
};

std::string Version() {
  const dnnl_version_t* version = dnnl::version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace
}  // namespace headlight::peers

int main() {
  try {
    headlight::peers::OneDnnServer().Serve(headlight::peers::Version());
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "onednn_attention: " << error.what() << "\n";
    return 1;
  }
}
