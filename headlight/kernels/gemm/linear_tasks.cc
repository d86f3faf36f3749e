// How dense products are cut for threads; that does not enter the results.
#include <algorithm>
#include <numeric>

#include "headlight/base/cpu.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/bf16_rounding.h"
#include "headlight/kernels/gemm/linear_internal.h"

namespace headlight::internal {
namespace {

// A task has several row blocks of the vector code (each asks for the next one's memory); less than
// one where there are few rows.
constexpr int64_t kRowsPerTask = 384;

// Under this many multiply-adds a task costs less than waking a thread for it.
constexpr int64_t kLeastWork = 250000;

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t RowGrain(int64_t rows, int64_t in, int64_t out) {
  // As many rows for one thread as for the next, where there is work for all.
  const int64_t rounds = DivideUp(rows, kRowsPerTask * NumThreads());
  const int64_t share = DivideUp(rows, rounds * NumThreads());
  const int64_t least = DivideUp(kLeastWork / (in * out) + 1, 6) * 6;
  return std::clamp<int64_t>(share, std::min(least, kRowsPerTask), kRowsPerTask);
}

void Reserve(int64_t size, DType dtype, Tensor& buffer) {
  if (buffer.empty() || buffer.dtype() != dtype || buffer.elements() != size) {
    buffer = Tensor::Uninitialized({size}, dtype, MemoryTag::kWorkspace);
  }
}

// Size of `parts` nearly equal parts of `count`, a multiple of `step`.
int64_t PartSize(int64_t count, int64_t parts, int64_t step) {
  return DivideUp(DivideUp(count, parts), step) * step;
}

// How a weight gradient is cut into blocks; that does not enter the results.
struct GradientParts {
  int64_t out, in;  // sizes

  GradientParts(int64_t rows, int64_t all_out, int64_t all_in) {
    // A block's sums (512 KiB) and what is packed for it lie in L2.
    constexpr int64_t kShort = 256, kLong = 512, kLeast = 48;
    const int64_t in_parts = DivideUp(all_in, all_out <= kShort ? kLong : kShort);
    in = PartSize(all_in, in_parts, 64);
    int64_t out_parts = DivideUp(all_out, in <= kShort ? kLong : kShort);
    // As many blocks for one thread as for the next, as far as that leaves blocks worth packing
    // for.
    if (rows * all_in * all_out >= kLeastWork) {
      const int64_t threads = NumThreads();
      const int64_t step = threads / std::gcd(threads, in_parts);
      const int64_t even = DivideUp(out_parts, step) * step;
      out_parts = std::max(out_parts, std::min(even, all_out / kLeast));
    }
    out = PartSize(all_out, out_parts, 16);
  }
};

// What multiplies in a precision, and whether it wants rounded operands.
struct Choice {
  const LinearKernels& kernels;
  bool rounds;
};

Choice Choose(Precision precision) {
  if (precision == Precision::kF32) return {F32LinearKernels(), false};
  if (SelectedBf16Unit() == Bf16Unit::kNone) return {F32LinearKernels(), true};
  return {Bf16LinearKernels(), false};
}

Tensor Operand(const Tensor& tensor, bool rounds) {
  return rounds ? RoundedToBf16(tensor) : tensor;
}

// Floats for each worker.
class Workspaces {
 public:
  explicit Workspaces(int64_t size) : size_(size) {
    if (size == 0) return;
    floats_ = Tensor::Uninitialized({NumThreads(), size}, DType::kF32, MemoryTag::kWorkspace);
  }

  float* Of(int worker) { return size_ == 0 ? nullptr : floats_.data<float>() + worker * size_; }

 private:
  int64_t size_;
  Tensor floats_;
};

}  // namespace

void PackLinear(const Tensor& weight, PackedLinear::Use use, Precision precision,
                PackedLinear::Layout& layout) {
  const Choice choice = Choose(precision);
  const LinearKernels& kernels = choice.kernels;
  layout.kernels = &kernels;
  layout.rounds = choice.rounds;
  const Tensor from = Operand(weight, choice.rounds);
  const int64_t out = weight.size(0), in = weight.size(1), panel = kernels.panel_columns();
  Reserve(kernels.packed_size(in, out), kernels.packed, layout.forward);
  const int64_t forward_panels = DivideUp(out, panel);
  int64_t backward_panels = 0;
  if (use == PackedLinear::Use::kForwardAndBackward) {
    Reserve(kernels.packed_size(out, in), kernels.packed, layout.backward);
    backward_panels = DivideUp(in, panel);
  } else {
    layout.backward = Tensor();
  }
  ParallelFor(forward_panels + backward_panels, [&](int64_t task, int) {
    if (task < forward_panels) {
      kernels.pack_forward_panel(from, task * panel, layout.forward);
    } else {
      kernels.pack_backward_panel(from, (task - forward_panels) * panel, layout.backward);
    }
  });
}

void LinearForward(const Tensor& x, const PackedLinear& weight, const Tensor* bias,
                   const LinearForwardOptions& options, Tensor& y) {
  const PackedLinear::Layout& layout = *weight.layout();
  const Tensor from = Operand(x, layout.rounds);
  Workspaces workspaces(layout.kernels->rows_workspace(x.size(1)));
  ParallelForRange(x.size(0), RowGrain(x.size(0), x.size(1), y.size(1)),
                   [&](int64_t begin, int64_t end, int worker) {
                     layout.kernels->forward_rows({from, layout.forward, bias, options, y, begin,
                                                   end, workspaces.Of(worker)});
                   });
}

void LinearBackwardInput(const Tensor& dy, const PackedLinear& weight,
                         const LinearBackwardInputOptions& options, Tensor& dx) {
  const PackedLinear::Layout& layout = *weight.layout();
  const Tensor from = Operand(dy, layout.rounds);
  Workspaces workspaces(layout.kernels->rows_workspace(dy.size(1)));
  ParallelForRange(dy.size(0), RowGrain(dy.size(0), dx.size(1), dy.size(1)),
                   [&](int64_t begin, int64_t end, int worker) {
                     layout.kernels->backward_input_rows(
                         {from, layout.backward, options, dx, begin, end, workspaces.Of(worker)});
                   });
}

// Blocks of the gradient, so that threads own disjoint outputs.
void LinearBackwardWeight(const Tensor& x, const Tensor& dy, Precision precision, Tensor& dweight,
                          Tensor* dbias) {
  const Choice choice = Choose(precision);
  const Tensor inputs = Operand(x, choice.rounds), gradients = Operand(dy, choice.rounds);
  const int64_t out = dy.size(1), in = x.size(1);
  const GradientParts parts(x.size(0), out, in);
  const int64_t out_part = parts.out, in_part = parts.in;
  const int64_t out_parts = DivideUp(out, out_part), in_parts = DivideUp(in, in_part);
  Workspaces workspaces(choice.kernels.gradient_workspace(out_part, in_part));
  float* bias = dbias ? dbias->data<float>() : nullptr;
  ParallelFor(out_parts * in_parts, [&](int64_t task, int worker) {
    const int64_t o = task / in_parts * out_part, i = task % in_parts * in_part;
    choice.kernels.backward_weight_block({inputs, gradients, dy, dweight, bias, o,
                                          std::min(out, o + out_part), i, std::min(in, i + in_part),
                                          workspaces.Of(worker)});
  });
}

}  // namespace headlight::internal
