#include "headlight/nn/feed_forward.h"

#include <algorithm>

#include "headlight/kernels/activation/activation.h"

namespace headlight {
namespace {

// A multiple of the products' chunk of rows, so that the sums of weight gradients are cut at the
// same places as without chunks here.
constexpr int64_t kChunkRows = 4 * kLinearChunkRows;

// Calls body(begin, end) for consecutive ranges of rows.
template <typename Body>
void ForEachChunk(int64_t rows, const Body& body) {
  for (int64_t begin = 0; begin < rows; begin += kChunkRows) {
    body(begin, std::min(rows, begin + kChunkRows));
  }
}

}  // namespace

FeedForward::FeedForward(const FeedForwardConfig& config, DType dtype, uint64_t seed)
    : activation_(config.activation),
      up_({.parts = {{config.name + ".up", config.hidden}},
           .in = config.dim,
           .precision = config.precision},
          dtype, seed),
      down_({.parts = {{config.name + ".down", config.dim}},
             .in = config.hidden,
             .precision = config.precision},
            dtype, seed) {}

void FeedForward::Forward(const Tensor& x, const Tensor* residual, Saved* saved,
                          Workspace& workspace, Tensor& y) const {
  const int64_t rows = x.size(0), width = up_.out();
  const bool relu = activation_ == HiddenActivation::kRelu;
  if (saved != nullptr) {
    saved->input = x;
    saved->hidden.Get({rows, width}, x.dtype());
  }
  ForEachChunk(rows, [&](int64_t begin, int64_t end) {
    Tensor kept = saved != nullptr ? saved->hidden.tensor().Slice(0, begin, end)
                                   : workspace.hidden.Get({end - begin, width}, x.dtype());
    Tensor hidden = kept;
    if (!relu && saved != nullptr) hidden = workspace.hidden.Get({end - begin, width}, x.dtype());
    up_.Forward(x.Slice(0, begin, end),
                {.epilogue = relu ? Epilogue::kRelu : Epilogue::kGelu,
                 .pre_activation = !relu && saved != nullptr ? &kept : nullptr},
                hidden);
    Tensor out = y.Slice(0, begin, end);
    Tensor add;
    if (residual != nullptr) add = residual->Slice(0, begin, end);
    down_.Forward(hidden, {.residual = residual != nullptr ? &add : nullptr}, out);
  });
}

void FeedForward::Backward(const Tensor& dy, Update update, Saved& saved, Workspace& workspace,
                           Tensor& dx) {
  const int64_t width = up_.out();
  const bool relu = activation_ == HiddenActivation::kRelu;
  ForEachChunk(dy.size(0), [&](int64_t begin, int64_t end) {
    const Tensor dout = dy.Slice(0, begin, end);
    const Tensor kept = saved.hidden.tensor().Slice(0, begin, end);
    Tensor hidden = kept;
    if (!relu) {
      hidden = workspace.activation.Get({end - begin, width}, dy.dtype());
      GeluForward(kept, hidden);
    }
    down_.BackwardParameters(hidden, dout);
    Tensor& dhidden = workspace.hidden.Get({end - begin, width}, dy.dtype());
    down_.BackwardInput(
        dout, {.relu_output = relu ? &kept : nullptr, .gelu_input = relu ? nullptr : &kept},
        dhidden);
    up_.BackwardParameters(saved.input.Slice(0, begin, end), dhidden);
    Tensor dinput = dx.Slice(0, begin, end);
    up_.BackwardInput(dhidden, {.update = update}, dinput);
  });
}

void FeedForward::PrepareWeights() {
  up_.PrepareWeights();
  down_.PrepareWeights();
}

void FeedForward::Collect(std::vector<Parameter*>& parameters) {
  up_.Collect(parameters);
  down_.Collect(parameters);
}

}  // namespace headlight
