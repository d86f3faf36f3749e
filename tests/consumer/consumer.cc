// Uses the installed library as a stranger would: exits 0 when it works.
#include <cstdio>

#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/tensor/tensor.h"

int main() {
  using namespace headlight;
  Tensor squares = Tensor::Zeros({100}, DType::kF32, MemoryTag::kWorkspace);
  const View<float> view = squares.view<float>();
  ParallelFor(100, [&](int64_t i, int) { view(i) = static_cast<float>(i * i); });
  try {
    squares.Slice(0, 50, 101);
    return 1;
  } catch (const Error& error) {
    std::printf("%s: %s\n", IsaName(SelectedIsa()), error.what());
  }
  return view(99) == 9801.0f ? 0 : 1;
}
