// How fast attention is, by shape: `headlight bench`.
//
// Machines are noisy and their clocks move, so what is compared is measured in turns: in every
// repetition each shape runs for a moment, and the peak of the machine's products in that precision
// is measured just before it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headlight/kernels/attention/attention_implementation.h"
#include "headlight/kernels/timing/attention_shape.h"

namespace headlight {

// One pass of a shape with all that it reads and writes.
class TimedPass {
 public:
  // With standard normal inputs. Throws kResource.
  explicit TimedPass(const AttentionShape& shape);
  // With these; `out_gradient` is needed for shape.backward. Throws kShape when they do not fit.
  TimedPass(const AttentionShape& shape, AttentionInputs inputs, Tensor out_gradient);

  // Forward, or for shape.backward the backward pass alone: its forward pass ran in the
  // constructor.
  void Run();

  const AttentionInputs& inputs() const { return inputs_; }
  const Tensor& out_gradient() const { return out_gradient_; }
  const AttentionOutputs& outputs() const { return outputs_; }
  const AttentionGradients& gradients() const { return gradients_; }

 private:
  void Prepare();

  AttentionShape shape_;
  AttentionProblem problem_;
  AttentionInputs inputs_;
  Tensor out_gradient_;
  AttentionOutputs outputs_;
  AttentionGradients gradients_;
  AttentionPass pass_;
};

// Calls of `run` that take about `seconds` together (at least one), timed: after one call for the
// caches, as many as that one says.
int64_t CallsFor(double seconds, const std::function<void()>& run);

struct AttentionTiming {
  AttentionShape shape;
  int threads = 1;
  // One per repetition: seconds of a pass, and the peak measured just before (f32 or bf16, in
  // floating-point operations per second).
  std::vector<double> seconds;
  std::vector<double> peaks;
  double flops = 0;  // of a pass

  double MedianSeconds() const;
  double MedianPeak() const;
  // Of the repetitions' shares, each against its own peak.
  double MedianShareOfPeak() const;
};

// The middle value, or the mean of the two; `values` is not empty.
double Median(std::vector<double> values);

struct AttentionTimingOptions {
  std::vector<int> threads;    // each shape runs with each of them
  int64_t repeats = 7;         // >= 1
  double seconds = 0.05;       // that a shape runs in one repetition, about; at least one pass
  double peak_seconds = 0.01;  // that a measurement of the peak takes, at least
  // Called before each measurement; the timing stops where it throws.
  std::function<void(int64_t done, int64_t total)> progress;
};

// One result per shape and thread count, in the order shape, threads. Shapes take turns within
// groups of neighbours whose tensors fit into 1 GiB together. Sets the number of threads, and puts
// it back. Throws kUsage for bad options.
std::vector<AttentionTiming> TimeAttention(const std::vector<AttentionShape>& shapes,
                                           const AttentionTimingOptions& options);

}  // namespace headlight
