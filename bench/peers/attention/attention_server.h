// The protocol of the comparison, for the sides that are written in C++. One JSON object a line in,
// one a line back:
//   {"ask": "load", "path": F, "threads": T}     the inputs that Headlight made; says the methods
//   {"ask": "warm", "method": M, "seconds": S}   how many passes take about S seconds
//   {"ask": "run", "method": M, "calls": N}      seconds of a pass
//   {"ask": "save", "method": M, "path": F}      writes what the last pass gave
// side.py is the same in Python.
#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"
#include "headlight/io/safetensors.h"
#include "headlight/kernels/timing/attention_timing.h"

namespace headlight::peers {

using Json = nlohmann::json;

// A way to compute a shape.
struct Method {
  std::function<void()> run;  // one pass; what is timed
  // [tokens, heads, width]: "out", or "query_gradient", "key_gradient", "value_gradient".
  std::function<std::map<std::string, Tensor>()> outputs;
};

struct Methods {
  std::map<std::string, Method> methods;
  std::map<std::string, std::string> refused;  // name -> why
};

class AttentionServer {
 public:
  virtual ~AttentionServer() = default;

  // Answers requests until standard input ends.
  void Serve(const std::string& ready) {
    std::cout << Json{{"ready", ready}}.dump() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << Answer(Json::parse(line)).dump() << std::endl;
    }
  }

 protected:
  virtual Methods Load(const AttentionShape& shape, const Json& described, Safetensors inputs,
                       int threads) = 0;

  virtual Json Answer(const Json& request) {
    const std::string ask = request.at("ask");
    if (ask == "load") return Load(request.at("path"), request.at("threads"));
    const Method& method = loaded_.methods.at(request.at("method"));
    if (ask == "warm") return {{"calls", CallsFor(request.at("seconds"), method.run)}};
    if (ask == "run") return Run(method, request.at("calls"));
    if (ask == "save") {
      Safetensors contents;
      contents.tensors = method.outputs();
      WriteSafetensors(request.at("path"), contents);
      return {{"written", request.at("path")}};
    }
    throw Error(ErrorKind::kUsage, "no such request: {}", ask);
  }

 private:
  Json Load(const std::string& path, int threads) {
    loaded_ = {};
    Safetensors inputs = ReadSafetensors(path);
    const Json described = Json::parse(inputs.metadata.at("shape"));
    const AttentionShape shape = ParseAttentionShape(described.at("words").get<std::string>());
    loaded_ = Load(shape, described, std::move(inputs), threads);
    Json names = Json::array();
    for (const auto& [name, method] : loaded_.methods) names.push_back(name);
    return {{"methods", names}, {"refused", loaded_.refused}};
  }

  static Json Run(const Method& method, int64_t calls) {
    const double began = MonotonicSeconds();
    for (int64_t call = 0; call < calls; ++call) method.run();
    return {{"seconds", (MonotonicSeconds() - began) / static_cast<double>(calls)}};
  }

  Methods loaded_;
};

}  // namespace headlight::peers
