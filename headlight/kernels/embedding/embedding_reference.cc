#include "headlight/kernels/embedding/embedding_reference.h"

namespace headlight::reference {
namespace {

// Calls function(token, position) over all sequences; without offsets the position is 0.
template <typename Function>
void ForEachToken(const EmbeddingInput& input, const Function& function) {
  if (input.offsets.empty()) {
    for (int64_t token = 0; token < input.ids.size(0); ++token) function(token, int64_t{0});
    return;
  }
  for (size_t s = 0; s + 1 < input.offsets.size(); ++s) {
    for (int64_t token = input.offsets[s]; token < input.offsets[s + 1]; ++token) {
      function(token, token - input.offsets[s]);
    }
  }
}

}  // namespace

void EmbeddingForward(const EmbeddingInput& input, Tensor& y) {
  DispatchFloat(y.dtype(), [&]<typename T>() {
    ForEachToken(input, [&](int64_t token, int64_t position) {
      const T* from = input.table.view<T>().row(input.ids.data<int32_t>()[token]);
      T* to = y.view<T>().row(token);
      for (int64_t i = 0; i < y.size(1); ++i) {
        double value = input.scale * static_cast<double>(from[i]);
        if (input.positions) {
          value += static_cast<double>(input.positions->view<T>().row(position)[i]);
        }
        to[i] = static_cast<T>(value);
      }
    });
  });
}

void EmbeddingBackward(const EmbeddingInput& input, const Tensor& dy,
                       const EmbeddingGradient& gradient) {
  DispatchFloat(dy.dtype(), [&]<typename T>() {
    ForEachToken(input, [&](int64_t token, int64_t position) {
      const T* from = dy.view<T>().row(token);
      T* to = gradient.dtable.view<T>().row(input.ids.data<int32_t>()[token]);
      for (int64_t i = 0; i < dy.size(1); ++i) {
        to[i] =
            static_cast<T>(static_cast<double>(to[i]) + input.scale * static_cast<double>(from[i]));
        if (gradient.dpositions) gradient.dpositions->view<T>().row(position)[i] += from[i];
      }
    });
  });
}

}  // namespace headlight::reference
