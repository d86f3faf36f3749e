// headlight bench: how fast attention is on this machine, and which share of its peak that is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "apps/headlight/shape_lists.h"
#include "headlight/base/cpu.h"
#include "headlight/base/error.h"
#include "headlight/base/progress.h"
#include "headlight/base/threads.h"
#include "headlight/io/file.h"
#include "headlight/kernels/timing/attention_timing.h"

namespace headlight::app {
namespace {

constexpr int64_t kLargestList = int64_t{1} << 20;  // bytes

struct BenchArguments {
  std::vector<std::string> lists;
  std::vector<std::string> shapes;
  std::vector<int> threads;
  int64_t repeats = 7;
  double seconds = 0.05;
  bool explain = false;
  bool json = false;
};

// Shapes that are shown together.
struct ShapeGroup {
  std::string name;
  std::vector<AttentionShape> shapes;
};

std::string ListNames() {
  std::string names;
  for (const ShapeList& list : ShapeLists()) {
    names += (names.empty() ? "" : ", ") + std::string(list.name);
  }
  return names;
}

// A built-in list by its name, or a file.
ShapeGroup ReadList(const std::string& name) {
  for (const ShapeList& list : ShapeLists()) {
    if (list.name == name) return {name, ParseAttentionShapes(list.text, name)};
  }
  std::string text;
  try {
    text = ReadFile(name, kLargestList);
  } catch (const Error& error) {
    throw Error(error.kind(), "{} (built-in lists: {})", error.what(), ListNames());
  }
  return {name, ParseAttentionShapes(text, name)};
}

std::vector<ShapeGroup> ChosenShapes(const BenchArguments& arguments) {
  std::vector<ShapeGroup> groups;
  if (!arguments.shapes.empty()) {
    ShapeGroup& group = groups.emplace_back();
    for (const std::string& text : arguments.shapes) {
      group.shapes.push_back(ParseAttentionShape(text));
    }
  }
  for (const std::string& name : arguments.lists) groups.push_back(ReadList(name));
  if (groups.empty()) {
    for (const ShapeList& list : ShapeLists()) groups.push_back(ReadList(std::string(list.name)));
  }
  return groups;
}

void Explain(const std::vector<ShapeGroup>& groups, bool as_json) {
  nlohmann::ordered_json plans = nlohmann::ordered_json::array();
  std::string text;
  for (const ShapeGroup& group : groups) {
    for (const AttentionShape& shape : group.shapes) {
      const AttentionProblem problem = MakeAttentionProblem(shape, TableValues::kUninitialized);
      AttentionPlan plan;
      if (shape.implementation == AttentionImplementation::kFused) {
        plan = PlanAttention(problem);
      } else {
        plan.kernel = AttentionKernelName(shape.implementation, problem);
      }
      text += fmt::format("{}: {}\n", shape.ToString(), plan.ToString());
      plans.push_back({{"shape", shape.ToString()},
                       {"kernel", plan.kernel},
                       {"query_rows", plan.query_rows},
                       {"query_block", plan.query_block},
                       {"key_block", plan.key_block},
                       {"refusals", plan.refusals}});
    }
  }
  PrintBytes(as_json ? plans.dump() + "\n" : text);
}

// The peak is that of f32 or of bf16: doubles have no share of it.
Cell ShareOfPeak(const AttentionTiming& timing) {
  return timing.shape.dtype != DType::kF64 ? Cell::Percent(timing.MedianShareOfPeak(), 1) : Cell();
}

void AddTiming(const AttentionTiming& timing, Table& table) {
  const auto [lowest, highest] = std::minmax_element(timing.seconds.begin(), timing.seconds.end());
  const double median = timing.MedianSeconds();
  table.AddRow(
      {timing.shape.ToString(), timing.threads,
       fmt::format("{:.3f} ({:.3f} - {:.3f})", 1e3 * median, 1e3 * *lowest, 1e3 * *highest),
       Cell::Real(1e3 * median, 3), Cell::Real(1e3 * *lowest, 3), Cell::Real(1e3 * *highest, 3),
       Cell::Real(1e-9 * timing.flops / median, 1), Cell::Real(1e-9 * timing.MedianPeak(), 1),
       ShareOfPeak(timing)});
}

Table TimingTable(const std::vector<ShapeGroup>& groups,
                  const std::vector<AttentionTiming>& timings, size_t timings_per_shape) {
  Table table({{"shape", "", Align::kLeft},
               {"threads"},
               {"ms (lowest - highest)", "", Align::kRight, Audience::kPeople},
               {"ms", "milliseconds", Align::kRight, Audience::kMachines},
               {"lowest", "lowest_milliseconds", Align::kRight, Audience::kMachines},
               {"highest", "highest_milliseconds", Align::kRight, Audience::kMachines},
               {"GFLOP/s", "gflops_per_second"},
               {"peak", "peak_gflops_per_second"},
               {"share", "share_of_peak"}});
  auto timing = timings.begin();
  for (const ShapeGroup& group : groups) {
    if (!group.name.empty()) table.StartGroup(group.name);
    for (size_t i = 0; i < group.shapes.size() * timings_per_shape; ++i) {
      AddTiming(*timing++, table);
    }
  }
  return table;
}

void RunBench(const BenchArguments& arguments) {
  if (std::isnan(arguments.seconds)) {  // which no range refuses
    throw Error(ErrorKind::kUsage, "--seconds: must be a number from 0 to 3600, found nan");
  }
  const std::vector<ShapeGroup> groups = ChosenShapes(arguments);
  if (arguments.explain) {
    Explain(groups, arguments.json);
    return;
  }
  std::vector<AttentionShape> shapes;
  for (const ShapeGroup& group : groups) {
    shapes.insert(shapes.end(), group.shapes.begin(), group.shapes.end());
  }
  TerminalProgress progress(stderr);
  AttentionTimingOptions options;
  options.threads = arguments.threads.empty() ? std::vector<int>{NumThreads()} : arguments.threads;
  options.repeats = arguments.repeats;
  options.seconds = arguments.seconds;
  options.progress = [&](int64_t done, int64_t total) {
    progress.Update({"attention", done, total, {}});
  };
  const std::vector<AttentionTiming> timings = TimeAttention(shapes, options);
  progress.Finish();
  const Table table = TimingTable(groups, timings, options.threads.size());
  if (arguments.json) {
    PrintBytes(fmt::format("{{\"cpu\":{},\"isa\":\"{}\",\"repeats\":{},\"results\":{}}}\n",
                           nlohmann::json(CpuModelName()).dump(), IsaName(SelectedIsa()),
                           options.repeats, TableAsJson(table)));
    return;
  }
  PrintBytes(fmt::format("{}, {}; median of {} repetitions in turns\n\n", CpuModelName(),
                         IsaName(SelectedIsa()), options.repeats));
  PrintTable(table);
}

std::string WordsOfAShape() {
  std::string text = "Words of a shape (default):\n";
  for (const AttentionShapeWord& word : AttentionShapeWords()) {
    text += fmt::format("  {:<20}{}\n", word.word, word.meaning);
  }
  return text + "GFLOP/s count the products of what the masks keep: two forward, five backward.";
}

}  // namespace

void AddBenchCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "bench", "Time attention by shape, beside the machine's peak; --explain: what would run");
  auto arguments = std::make_shared<BenchArguments>();
  command
      ->add_option("lists", arguments->lists,
                   "Lists of shapes: " + ListNames() + " (all, unless given), or files")
      ->type_name("LIST")
      ->default_str("");
  command
      ->add_option("--shape", arguments->shapes,
                   "One shape, such as 'b1 h8 n1024 d64 causal'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("WORDS")
      ->default_str("");
  command
      ->add_option("--threads", arguments->threads,
                   "Thread counts that take turns: 1,2 (default: one per physical core)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->default_str("");
  command->add_option("--repeats", arguments->repeats, "Repetitions; the median is shown")
      ->check(CLI::Range(int64_t{1}, int64_t{10000}))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--seconds", arguments->seconds,
                   "That a shape runs in one repetition, about; at least one pass")
      ->check(CLI::Range(0.0, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  command->add_flag("--explain", arguments->explain,
                    "Only print which kernel would run, and why each better one would not");
  command->add_flag("--json", arguments->json, "JSON on stdout");
  command->footer(WordsOfAShape());
  command->callback([arguments] { RunBench(*arguments); });
}

}  // namespace headlight::app
