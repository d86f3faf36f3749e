// Headlight's side of the comparison of attention with other libraries. One JSON object a line in,
// one a line back (the protocol of side.py):
//   {"ask": "make", "shape": "b1 h8 n1024 d64", "path": F}   writes inputs for all sides, says what
//   the shape is
//   {"ask": "load", "path": F, "threads": T}                 the inputs that `make` wrote; says its
//   methods
//   {"ask": "warm", "method": M, "seconds": S}               how many passes take about S seconds
//   {"ask": "run", "method": M, "calls": N}                  seconds of a pass
//   {"ask": "save", "method": M, "path": F}                  writes what the last pass gave
//   {"ask": "peak"}                                          FMA peak, in floating-point operations
//   per second
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "headlight/base/clock.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/safetensors.h"
#include "headlight/kernels/peak/peak.h"
#include "headlight/kernels/timing/attention_timing.h"

namespace headlight {
namespace {

using Json = nlohmann::json;

// What the others need to know, in their words: masks as numbers, lengths of every sequence alike.
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
      // A query counts from here among the keys, for causal and window.
      {"first", shape.causal == Mask::Causal::kAlignedToEnd ? shape.keys - shape.Queries() : 0},
      {"key_length", shape.key_length > 0 ? shape.key_length : shape.keys},
      {"backward", shape.backward},
      {"flops", AttentionFlops(shape)}};
  if (shape.window) described["window"] = {shape.window->left, shape.window->right};
  return described;
}

class Server {
 public:
  Json Answer(const Json& request) {
    const std::string ask = request.at("ask");
    if (ask == "make") return Make(request.at("shape"), request.at("path"));
    if (ask == "load") return Load(request.at("path"), request.at("threads"));
    if (ask == "peak") return {{"flops_per_second", MeasureFmaPeak(NumThreads())}};
    if (pass_ == nullptr) throw Error(ErrorKind::kUsage, "{}: load a shape first", ask);
    if (ask == "warm") {
      return {{"calls", CallsFor(request.at("seconds"), [&] { pass_->Run(); })}};
    }
    if (ask == "run") return Run(request.at("calls"));
    if (ask == "save") return Save(request.at("path"));
    throw Error(ErrorKind::kUsage, "no such request: {}", ask);
  }

 private:
  static Json Make(const std::string& words, const std::string& path) {
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

  Json Load(const std::string& path, int threads) {
    SetNumThreads(threads);
    Safetensors contents = ReadSafetensors(path);
    const Json described = Json::parse(contents.metadata.at("shape"));
    shape_ = ParseAttentionShape(described.at("words").get<std::string>());
    pass_ = std::make_unique<AttentionPass>(
        shape_,
        AttentionInputs{contents.tensors.at("query"), contents.tensors.at("key"),
                        contents.tensors.at("value")},
        shape_.backward ? contents.tensors.at("out_gradient") : Tensor());
    return {{"methods", {PlanAttention(MakeAttentionProblem(shape_)).kernel}},
            {"refused", Json::object()}};
  }

  Json Run(int64_t calls) {
    const double began = MonotonicSeconds();
    for (int64_t call = 0; call < calls; ++call) pass_->Run();
    return {{"seconds", (MonotonicSeconds() - began) / static_cast<double>(calls)}};
  }

  Json Save(const std::string& path) const {
    Safetensors contents;
    if (shape_.backward) {
      contents.tensors["query_gradient"] = pass_->gradients().query;
      contents.tensors["key_gradient"] = pass_->gradients().key;
      contents.tensors["value_gradient"] = pass_->gradients().value;
    } else {
      contents.tensors["out"] = pass_->outputs().out;
    }
    WriteSafetensors(path, contents);
    return {{"written", path}};
  }

  AttentionShape shape_;
  std::unique_ptr<AttentionPass> pass_;
};

int Serve() {
  const Json ready = {{"ready", "Headlight, " + std::string(IsaName(SelectedIsa()))}};
  std::cout << ready.dump() << std::endl;
  Server server;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << server.Answer(Json::parse(line)).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace headlight

int main() {
  try {
    return headlight::Serve();
  } catch (const std::exception& error) {
    std::cerr << "headlight_attention: " << error.what() << "\n";
    return 1;
  }
}
