// Headlight's side of the comparison of attention with other libraries. Beside what
// attention_server.h states:
//   {"ask": "make", "shape": W, "path": F}    writes inputs for all sides; answers what the shape
//                                             is, or why it is "refused"
//   {"ask": "peak", "bf16": B}                the machine's peak in f32 or bf16, in floating-point
//                                             operations per second
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

// Why a shape is not compared with others; empty: it is.
std::string Refusal(const AttentionShape& shape) {
  if (shape.dtype != DType::kF32) return "tensors of f32 alone are compared";
  if (shape.ragged) return "sequences of one length are compared";
  if (shape.relative || shape.dropout > 0) return "not all have relative positions and dropout";
  if (shape.statistics || shape.weights > 0) return "probes are not compared";
  if (shape.kept_blocks > 0) return "lists of blocks are not compared";
  if (shape.implementation != AttentionImplementation::kFused) return "it is not fused";
  return "";
}

// What the others need to know, in plain numbers.
Json Describe(const AttentionShape& shape) {
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
      {"bf16", shape.precision == Precision::kBF16},
      {"flops", AttentionFlops(shape)}};
  if (shape.window) described["window"] = {shape.window->left, shape.window->right};
  return described;
}

Json Make(const std::string& words, const std::string& path) {
  const AttentionShape shape = ParseAttentionShape(words);
  const std::string refusal = Refusal(shape);
  if (!refusal.empty()) return {{"refused", refusal}};
  const Json described = Describe(shape);
  const TimedPass pass(shape);
  Safetensors contents;
  contents.tensors["query"] = pass.inputs().query;
  contents.tensors["key"] = pass.inputs().key;
  contents.tensors["value"] = pass.inputs().value;
  if (shape.backward) contents.tensors["out_gradient"] = pass.out_gradient();
  contents.metadata["shape"] = described.dump();
  WriteSafetensors(path, contents);
  return described;
}

// [batch, len, heads, dim] of any strides to [tokens, heads, dim].
Tensor TokenRows(const Tensor& padded) {
  const Shape& shape = padded.shape();
  return padded.Clone(MemoryTag::kOther).Reshape({shape[0] * shape[1], shape[2], shape[3]});
}

class HeadlightServer : public AttentionServer {
  Methods Load(const AttentionShape& asked, const Json&, Safetensors inputs, int threads) override {
    SetNumThreads(threads);
    AttentionShape shape = asked;
    shape.bhnd = true;  // as PyTorch and oneDNN have their tensors
    auto& tensors = inputs.tensors;
    const auto pass = std::make_shared<TimedPass>(
        shape, AttentionInputs{tensors.at("query"), tensors.at("key"), tensors.at("value")},
        shape.backward ? tensors.at("out_gradient") : Tensor());
    Methods loaded;
    Method& method = loaded.methods[PlanAttention(MakeAttentionProblem(shape)).kernel];
    method.run = [pass] { pass->Run(); };
    method.outputs = [pass, backward = shape.backward]() -> std::map<std::string, Tensor> {
      if (!backward) return {{"out", TokenRows(pass->outputs().out)}};
      return {{"query_gradient", TokenRows(pass->gradients().query)},
              {"key_gradient", TokenRows(pass->gradients().key)},
              {"value_gradient", TokenRows(pass->gradients().value)}};
    };
    return loaded;
  }

  Json Answer(const Json& request) override {
    if (request.at("ask") == "make") return Make(request.at("shape"), request.at("path"));
    if (request.at("ask") == "peak") {
      const Precision precision = request.at("bf16") ? Precision::kBF16 : Precision::kF32;
      return {{"flops_per_second", MeasurePeak(precision, NumThreads())}};
    }
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
