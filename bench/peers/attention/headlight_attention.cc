// Headlight's side of the comparison of attention with other libraries. Beside what
// attention_server.h states:
//   {"ask": "make", "shape": "b1 h8 n1024 d64", "path": F}   writes inputs for all sides, says what
//   the shape is
//   {"ask": "peak"}                                          FMA peak, in floating-point operations
//   per second
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "bench/peers/attention/attention_server.h"
#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/peak/peak.h"

namespace headlight::peers {
namespace {

// What the others need to know, in plain numbers.
Json Describe(const AttentionShape& shape) {
  if (shape.ragged || shape.relative || shape.dropout > 0 || shape.statistics ||
      shape.weights > 0 || shape.dtype != DType::kF32) {
    throw Error(ErrorKind::kUsage,
                "shape {}: only f32 without ragged, relative, dropout, statistics and weights is "
                "compared with others",
                shape.ToString());
  }
  Json described = {
      {"words", shape.ToString()},
      {"batch", shape.batch},
      {"heads", shape.heads},
      {"kv_heads", shape.KvHeads()},
      {"queries", shape.Queries()},
      {"keys", shape.keys},
      {"head_dim", shape.head_dim},
      {"value_dim", shape.ValueDim()},
      {"causal", shape.causal != Mask::Causal::kNone},
      // Among the keys, the first query counts as this one.
      {"first",
       shape.causal == Mask::Causal::kAlignedToEnd ? shape.keys - shape.Queries() : int64_t{0}},
      {"key_length", shape.key_length > 0 ? shape.key_length : shape.keys},
      {"backward", shape.backward},
      {"flops", AttentionFlops(shape)}};
  if (shape.window) described["window"] = {shape.window->left, shape.window->right};
  return described;
}

Json Make(const std::string& words, const std::string& path) {
  const AttentionShape shape = ParseAttentionShape(words);
  const Json described = Describe(shape);
  const AttentionPass pass(shape);
  Safetensors contents;
  contents.tensors["query"] = pass.inputs().query;
  contents.tensors["key"] = pass.inputs().key;
  contents.tensors["value"] = pass.inputs().value;
  if (shape.backward) contents.tensors["out_gradient"] = pass.out_gradient();
  contents.metadata["shape"] = described.dump();
  WriteSafetensors(path, contents);
  return described;
}

class HeadlightServer : public AttentionServer {
  Methods Load(const AttentionShape& shape, const Json&, Safetensors inputs, int threads) override {
    SetNumThreads(threads);
    auto& tensors = inputs.tensors;
    const auto pass = std::make_shared<AttentionPass>(
        shape, AttentionInputs{tensors.at("query"), tensors.at("key"), tensors.at("value")},
        shape.backward ? tensors.at("out_gradient") : Tensor());
    Methods loaded;
    Method& method = loaded.methods[PlanAttention(MakeAttentionProblem(shape)).kernel];
    method.run = [pass] { pass->Run(); };
    method.outputs = [pass, backward = shape.backward]() -> std::map<std::string, Tensor> {
      if (!backward) return {{"out", pass->outputs().out}};
      return {{"query_gradient", pass->gradients().query},
              {"key_gradient", pass->gradients().key},
              {"value_gradient", pass->gradients().value}};
    };
    return loaded;
  }

  Json Answer(const Json& request) override {
    if (request.at("ask") == "make") return Make(request.at("shape"), request.at("path"));
    if (request.at("ask") == "peak") return {{"flops_per_second", MeasureFmaPeak(NumThreads())}};
    return AttentionServer::Answer(request);
  }
};

}  // namespace
}  // namespace headlight::peers

int main() {
  try {
    headlight::peers::HeadlightServer().Serve(std::string("Headlight, ") +
                                              headlight::IsaName(headlight::SelectedIsa()));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "headlight_attention: " << error.what() << "\n";
    return 1;
  }
}
