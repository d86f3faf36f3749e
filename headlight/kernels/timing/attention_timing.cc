#include "headlight/kernels/timing/attention_timing.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/base/threads.h"
#include "headlight/kernels/half_formats.h"
#include "headlight/kernels/peak/peak.h"

namespace headlight {
namespace {

constexpr double kGroupBytes = 1.0 * (int64_t{1} << 30);

// Standard normal values; the rows share the work.
Tensor NormalRows(int64_t rows, int64_t heads, int64_t width, DType dtype, uint64_t seed) {
  const DType made = IsStorage(dtype) ? DType::kF32 : dtype;
  Tensor tensor = Tensor::Uninitialized({rows, heads, width}, made, MemoryTag::kOther);
  DispatchFloat(made, [&]<typename T>() {
    T* const data = tensor.data<T>();
    constexpr int64_t kGrain = 64;
    ParallelForRange(rows, kGrain, [&](int64_t begin, int64_t end, int) {
      RandomStream random(seed, static_cast<uint64_t>(begin));
      for (int64_t i = begin * heads * width; i < end * heads * width; ++i) {
        data[i] = static_cast<T>(static_cast<float>(random.Normal()));
      }
    });
  });
  if (made == dtype) return tensor;
  Tensor stored = Tensor::Uninitialized(tensor.shape(), dtype, MemoryTag::kOther);
  DispatchStorage(dtype, [&]<typename T>() {
    std::transform(tensor.data<float>(), tensor.data<float>() + tensor.elements(), stored.data<T>(),
                   FromFloat<T>);
  });
  return stored;
}

AttentionInputs NormalInputs(const AttentionShape& shape, const AttentionProblem& problem) {
  const int64_t keys = problem.key_tokens(), kv_heads = shape.KvHeads();
  return {NormalRows(problem.query_tokens(), shape.heads, shape.head_dim, shape.dtype, 1),
          NormalRows(keys, kv_heads, shape.head_dim, shape.dtype, 2),
          NormalRows(keys, kv_heads, shape.ValueDim(), shape.dtype, 3)};
}

Tensor ZerosLike(const Tensor& tensor) {
  if (tensor.empty()) return {};
  return Tensor::Zeros(tensor.shape(), tensor.dtype(), MemoryTag::kOther);
}

// Tensors of tokens, as a shape wants them to lie.
class Layout {
 public:
  explicit Layout(const AttentionShape& shape) : batch_(shape.batch), bhnd_(shape.bhnd) {}

  Tensor Zeros(int64_t tokens, int64_t heads, int64_t width, DType dtype) const {
    if (!bhnd_) return Tensor::Zeros({tokens, heads, width}, dtype, MemoryTag::kOther);
    return PaddedRows(
        Tensor::Zeros({batch_, heads, tokens / batch_, width}, dtype, MemoryTag::kOther),
        PaddedLayout::kBatchHeadsLen);
  }
  Tensor ZerosLike(const Tensor& rows) const {
    return Zeros(rows.size(0), rows.size(1), rows.size(2), rows.dtype());
  }

  // `rows`: [tokens, heads, width].
  Tensor Of(const Tensor& rows) const {
    if (!bhnd_ || rows.empty()) return rows;
    Tensor laid = ZerosLike(rows);
    laid.CopyFrom(rows.Reshape({batch_, rows.size(0) / batch_, rows.size(1), rows.size(2)}));
    return laid;
  }

 private:
  int64_t batch_;
  bool bhnd_;
};

// A shape of a group, ready to run.
struct Entry {
  std::unique_ptr<TimedPass> pass;
  size_t timing = 0;  // its first result; one per thread count follows
  std::vector<int64_t> calls;
};

class Turns {
 public:
  Turns(const AttentionTimingOptions& options, std::vector<AttentionTiming>& timings)
      : options_(options), timings_(timings) {}

  // All repetitions of the shapes of results [begin, end).
  void RunGroup(size_t begin, size_t end) {
    std::vector<Entry> entries;
    for (size_t at = begin; at < end; at += options_.threads.size()) {
      Entry& entry = entries.emplace_back();
      entry.timing = at;
      entry.pass = std::make_unique<TimedPass>(timings_[at].shape);
      for (const int threads : options_.threads) {
        SetNumThreads(threads);
        entry.calls.push_back(CallsFor(options_.seconds, [&] { entry.pass->Run(); }));
      }
    }
    for (int64_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (Entry& entry : entries) Measure(entry);
      std::reverse(entries.begin(), entries.end());
    }
  }

 private:
  void Measure(const Entry& entry) {
    for (size_t i = 0; i < options_.threads.size(); ++i) {
      if (options_.progress) {
        options_.progress(done_, static_cast<int64_t>(timings_.size()) * options_.repeats);
      }
      AttentionTiming& timing = timings_[entry.timing + i];
      timing.peaks.push_back(
          MeasurePeak(timing.shape.precision, timing.threads, options_.peak_seconds));
      SetNumThreads(timing.threads);
      const double began = MonotonicSeconds();
      for (int64_t call = 0; call < entry.calls[i]; ++call) entry.pass->Run();
      timing.seconds.push_back((MonotonicSeconds() - began) / static_cast<double>(entry.calls[i]));
      ++done_;
    }
  }

  const AttentionTimingOptions& options_;
  std::vector<AttentionTiming>& timings_;
  int64_t done_ = 0;
};

class KeepNumThreads {
 public:
  KeepNumThreads() : before_(NumThreads()) {}
  ~KeepNumThreads() { SetNumThreads(before_); }
  KeepNumThreads(const KeepNumThreads&) = delete;
  KeepNumThreads& operator=(const KeepNumThreads&) = delete;

 private:
  const int before_;
};

}  // namespace

TimedPass::TimedPass(const AttentionShape& shape)
    : shape_(shape), problem_(MakeAttentionProblem(shape)), inputs_(NormalInputs(shape, problem_)) {
  if (shape.backward) {
    out_gradient_ =
        NormalRows(problem_.query_tokens(), shape.heads, shape.ValueDim(), shape.dtype, 4);
  }
  Prepare();
}

TimedPass::TimedPass(const AttentionShape& shape, AttentionInputs inputs, Tensor out_gradient)
    : shape_(shape),
      problem_(MakeAttentionProblem(shape)),
      inputs_(std::move(inputs)),
      out_gradient_(std::move(out_gradient)) {
  Prepare();
}

void TimedPass::Prepare() {
  for (int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
    for (int64_t head = 0; head < shape_.weights; ++head) {
      outputs_.weights.push_back({sequence, head, Tensor()});
    }
  }
  if (shape_.statistics) {
    outputs_.statistics.emplace();
    for (int64_t head = 0; head < shape_.heads; ++head) {
      outputs_.statistics->heads.push_back(head);
    }
  }
  const Layout layout(shape_);
  if (shape_.backward) {
    gradients_ = {layout.ZerosLike(inputs_.query), layout.ZerosLike(inputs_.key),
                  layout.ZerosLike(inputs_.value), ZerosLike(problem_.relative.keys),
                  ZerosLike(problem_.relative.values)};
  }
  outputs_.out =
      layout.Zeros(problem_.query_tokens(), shape_.heads, shape_.ValueDim(), shape_.dtype);
  inputs_ = {layout.Of(inputs_.query), layout.Of(inputs_.key), layout.Of(inputs_.value)};
  out_gradient_ = layout.Of(out_gradient_);
  if (shape_.backward) pass_.Forward(shape_.implementation, problem_, inputs_, outputs_);
}

void TimedPass::Run() {
  if (shape_.backward) {
    pass_.Backward(problem_, inputs_, outputs_.out, out_gradient_, gradients_);
  } else if (shape_.implementation == AttentionImplementation::kFused) {
    AttentionForward(problem_, inputs_, outputs_);  // without lse, which only gradients need
  } else {
    pass_.Forward(shape_.implementation, problem_, inputs_, outputs_);
  }
}

int64_t CallsFor(double seconds, const std::function<void()>& run) {
  run();
  const double began = MonotonicSeconds();
  run();
  const double took = std::max(MonotonicSeconds() - began, 1e-9);
  return std::clamp(static_cast<int64_t>(std::ceil(std::min(seconds / took, 1e9))), int64_t{1},
                    int64_t{1} << 30);
}

double Median(std::vector<double> values) {
  if (values.empty()) throw Error(ErrorKind::kUsage, "median: there must be values");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double AttentionTiming::MedianSeconds() const { return Median(seconds); }
double AttentionTiming::MedianPeak() const { return Median(peaks); }

double AttentionTiming::MedianShareOfPeak() const {
  std::vector<double> shares;
  for (size_t i = 0; i < seconds.size(); ++i) shares.push_back(flops / seconds[i] / peaks[i]);
  return Median(std::move(shares));
}

std::vector<AttentionTiming> TimeAttention(const std::vector<AttentionShape>& shapes,
                                           const AttentionTimingOptions& options) {
  if (options.repeats < 1 || options.threads.empty()) {
    throw Error(ErrorKind::kUsage,
                "timing: there must be >= 1 repetitions and thread counts, found {} and {}",
                options.repeats, options.threads.size());
  }
  const KeepNumThreads keep;
  std::vector<AttentionTiming> timings;
  for (const AttentionShape& shape : shapes) {
    for (const int threads : options.threads) {
      AttentionTiming& timing = timings.emplace_back();
      timing.shape = shape;
      timing.threads = threads;
      timing.flops = AttentionFlops(shape);
    }
  }
  Turns turns(options, timings);
  const size_t step = options.threads.size();
  for (size_t begin = 0; begin < timings.size();) {
    double bytes = timings[begin].shape.Bytes();
    size_t end = begin + step;
    while (end < timings.size() && bytes + timings[end].shape.Bytes() <= kGroupBytes) {
      bytes += timings[end].shape.Bytes();
      end += step;
    }
    turns.RunGroup(begin, end);
    begin = end;
  }
  return timings;
}

}  // namespace headlight
