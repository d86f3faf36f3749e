#include "headlight/text/layout.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "headlight/base/error.h"

namespace headlight {
namespace {

constexpr std::array<std::pair<std::string_view, DataPart>, 8> kPartNames = {{
    {"train", DataPart::kTrain},
    {"training", DataPart::kTrain},
    {"valid", DataPart::kValid},
    {"validation", DataPart::kValid},
    {"val", DataPart::kValid},
    {"dev", DataPart::kValid},
    {"test", DataPart::kTest},
    {"testing", DataPart::kTest},
}};
constexpr std::array<std::string_view, 5> kDataEndings = {".csv", ".tsv", ".jsonl", ".ndjson",
                                                          ".txt"};

std::string AsciiLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// "a/b/c" -> {"a", "b", "c"}.
std::vector<std::string_view> SplitPath(std::string_view path, std::string_view separators = "/") {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find_first_of(separators, begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool IsHidden(std::string_view path) {
  const std::vector<std::string_view> parts = SplitPath(path);
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.starts_with('.') || part == "__MACOSX" || part == "unsup";
  });
}

// Files in folders that hold no folder themselves.
Layout ClassFolders(const std::vector<std::string>& paths) {
  std::unordered_set<std::string_view> parents;  // folders that hold a folder
  for (const std::string& path : paths) {
    if (IsHidden(path)) continue;
    for (std::string_view folder = FolderOf(path); !folder.empty(); folder = FolderOf(folder)) {
      if (!parents.insert(FolderOf(folder)).second) break;
    }
  }
  Layout layout;
  layout.class_folders = true;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string_view folder = FolderOf(paths[i]);
    if (IsHidden(paths[i]) || folder.empty() || parents.count(folder) > 0) continue;
    const std::vector<std::string_view> parts = SplitPath(folder);
    if (PartOfName(parts.back()) != DataPart::kNone) continue;
    DataPart part = DataPart::kNone;
    for (const std::string_view name : parts) {
      if (PartOfName(name) != DataPart::kNone) part = PartOfName(name);
    }
    layout.files.push_back({i, std::string(parts.back()), part});
  }
  return layout;
}

// A folder of data files looks like one class; it is one only with another beside it.
bool HasOneClassOfDataFiles(const Layout& layout, const std::vector<std::string>& paths) {
  return std::all_of(layout.files.begin(), layout.files.end(), [&](const LayoutFile& file) {
    const std::string ending = AsciiLower(paths[file.index]);
    return file.label == layout.files[0].label &&
           (ending.ends_with(".csv") || ending.ends_with(".tsv") || ending.ends_with(".jsonl"));
  });
}

Layout DataFiles(const std::vector<std::string>& paths) {
  Layout layout;
  std::vector<LayoutFile> others;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (IsHidden(paths[i])) continue;
    const std::string_view path = paths[i];
    const std::string_view file = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    DataPart part = DataPart::kNone;
    for (const std::string_view name : SplitPath(file, "._-")) {
      if (PartOfName(name) != DataPart::kNone) part = PartOfName(name);
    }
    const std::string lower = AsciiLower(file);
    if (part != DataPart::kNone) {
      layout.files.push_back({i, "", part});
    } else if (std::any_of(kDataEndings.begin(), kDataEndings.end(),
                           [&](std::string_view ending) { return lower.ends_with(ending); })) {
      others.push_back({i, "", DataPart::kNone});
    }
  }
  if (layout.files.empty() && others.size() == 1) layout.files = std::move(others);
  return layout;
}

}  // namespace

DataPart PartOfName(std::string_view name) {
  const std::string lower = AsciiLower(name);
  for (const auto& [part_name, part] : kPartNames) {
    if (lower == part_name) return part;
  }
  return DataPart::kNone;
}

Layout PlanLayout(const std::vector<std::string>& paths, const std::string& name) {
  Layout layout = ClassFolders(paths);
  if (layout.files.empty() || HasOneClassOfDataFiles(layout, paths)) layout = DataFiles(paths);
  if (layout.files.empty()) {
    throw Error(ErrorKind::kInput,
                "data: {} holds neither class folders (LABEL/TEXTFILE, perhaps under train/ and "
                "valid/) nor data files named train.*, valid.* or test.*",
                name);
  }
  const auto has_part = [](const LayoutFile& file) { return file.part != DataPart::kNone; };
  layout.has_parts = std::any_of(layout.files.begin(), layout.files.end(), has_part);
  const auto stray = std::find_if_not(layout.files.begin(), layout.files.end(), has_part);
  if (layout.has_parts && stray != layout.files.end()) {
    throw Error(ErrorKind::kInput,
                "data: {}: some files lie under train/, valid/ or test/, but '{}' does not", name,
                paths[stray->index]);
  }
  return layout;
}

}  // namespace headlight
