#include "headlight/report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace headlight {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

std::string StageName(const ZoneEvent& event) {
  const std::string kind = ZoneKindName(event.kind);
  return event.pass == ZonePass::kUpdate ? kind : kind + ", " + ZonePassName(event.pass);
}

// Each event's time without that of the zones directly inside it.
std::vector<int64_t> OwnNanoseconds(const std::vector<ZoneEvent>& events,
                                    const std::vector<size_t>& by_begin) {
  std::vector<int64_t> own(events.size());
  std::vector<size_t> open;  // the zones that contain the present one, outermost first
  for (size_t index : by_begin) {
    const ZoneEvent& event = events[index];
    while (!open.empty() && events[open.back()].end_ns <= event.begin_ns) open.pop_back();
    own[index] = event.end_ns - event.begin_ns;
    if (!open.empty()) own[open.back()] -= own[index];
    open.push_back(index);
  }
  return own;
}

std::vector<size_t> OrderByBegin(const std::vector<ZoneEvent>& events) {
  std::vector<size_t> order(events.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&events](size_t a, size_t b) {
    if (events[a].begin_ns != events[b].begin_ns) return events[a].begin_ns < events[b].begin_ns;
    return events[a].end_ns > events[b].end_ns;  // the outer zone first
  });
  return order;
}

}  // namespace

ProfileSummary SummarizeProfile(const std::vector<ZoneEvent>& events) {
  ProfileSummary summary;
  if (events.empty()) return summary;
  const std::vector<size_t> order = OrderByBegin(events);
  const std::vector<int64_t> own = OwnNanoseconds(events, order);
  std::map<std::string, ProfileStage> stages;
  int64_t end = 0, covered = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    ProfileStage& stage = stages[StageName(events[i])];
    ++stage.calls;
    stage.seconds += Seconds(own[i]);
    stage.flops += events[i].flops;
    stage.memory_bytes += events[i].memory_bytes;
    covered += own[i];
    end = std::max(end, events[i].end_ns);
  }
  const int64_t whole = end - events[order.front()].begin_ns;
  stages["between zones"] = {"", 1, Seconds(whole - covered), 0, 0, 0};
  summary.seconds = Seconds(whole);
  for (auto& [name, stage] : stages) {
    stage.name = name;
    stage.share = stage.seconds / summary.seconds;
    summary.flops += stage.flops;
    summary.stages.push_back(stage);
  }
  std::stable_sort(
      summary.stages.begin(), summary.stages.end(),
      [](const ProfileStage& a, const ProfileStage& b) { return a.seconds > b.seconds; });
  return summary;
}

Table ProfileTable(const ProfileSummary& summary, double peak, size_t most) {
  Table table({{"stage", "", Align::kLeft},
               {"calls"},
               {"ms", "milliseconds"},
               {"share"},
               {"memory growth, MiB", "memory_growth_mib"},
               {"GFLOP/s", "gflops_per_second"},
               {"of peak", "share_of_peak"}});
  const auto rate_cells = [peak](double flops, double seconds) {
    if (flops <= 0 || seconds <= 0) return std::pair<Cell, Cell>();
    return std::pair(Cell::Real(flops / seconds * 1e-9, 1),
                     Cell::Percent(flops / seconds / peak, 1));
  };
  for (size_t i = 0; i < std::min(most, summary.stages.size()); ++i) {
    const ProfileStage& stage = summary.stages[i];
    auto [rate, share] = rate_cells(stage.flops, stage.seconds);
    table.AddRow({stage.name, stage.calls, Cell::Real(stage.seconds * 1e3, 2),
                  Cell::Percent(stage.share, 1),
                  Cell::Real(static_cast<double>(stage.memory_bytes) / kMiB, 1), rate, share});
  }
  auto [rate, share] = rate_cells(summary.flops, summary.seconds);
  table.StartGroup("");
  table.AddRow({"all", Cell(), Cell::Real(summary.seconds * 1e3, 2), Cell::Percent(1, 1), Cell(),
                rate, share});
  return table;
}

std::string ProfileTrace(const std::vector<ZoneEvent>& events) {
  int64_t begin = events.empty() ? 0 : events.front().begin_ns;
  for (const ZoneEvent& event : events) begin = std::min(begin, event.begin_ns);
  std::string trace = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (size_t i = 0; i < events.size(); ++i) {
    const ZoneEvent& event = events[i];
    trace += fmt::format(
        "{}{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{:.3f},\"dur\":"
        "{:.3f},"
        "\"args\":{{\"layer\":{},\"flops\":{},\"memory_bytes\":{}}}}}",
        i == 0 ? "\n" : ",\n", StageName(event), ZonePassName(event.pass),
        static_cast<double>(event.begin_ns - begin) * 1e-3,
        static_cast<double>(event.end_ns - event.begin_ns) * 1e-3, event.layer, event.flops,
        event.memory_bytes);
  }
  return trace + "\n]}\n";
}

}  // namespace headlight
