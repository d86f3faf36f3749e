#include "headlight/text/readers.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "headlight/base/error.h"
#include "headlight/io/archive.h"
#include "headlight/io/byte_order_mark.h"
#include "headlight/io/file.h"
#include "headlight/text/layout.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFileBytes = int64_t{2} << 30;
constexpr int64_t kMaxTextFileBytes = int64_t{64} << 20;  // of one text in a class folder
constexpr size_t kMaxFiles = 5'000'000;

constexpr std::array<DataFormat, 8> kFormats = {
    DataFormat::kAuto, DataFormat::kFolders, DataFormat::kArchive,   DataFormat::kCsv,
    DataFormat::kTsv,  DataFormat::kJsonl,   DataFormat::kLabelText, DataFormat::kTextLabel};

Dataset& PartOf(DataPart part, DatasetParts* parts) {
  switch (part) {
    case DataPart::kValid:
      return parts->valid;
    case DataPart::kTest:
      return parts->test;
    default:
      return parts->train;
  }
}

void Append(Dataset&& from, Dataset* to) {
  if (to->format.empty()) to->format = from.format;
  to->examples.insert(to->examples.end(), std::make_move_iterator(from.examples.begin()),
                      std::make_move_iterator(from.examples.end()));
}

// Where the bytes of a planned file come from.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::string Take(size_t index) = 0;          // its bytes, once
  virtual std::string Origin(size_t index) const = 0;  // its name for people
};

class FolderSource : public Source {
 public:
  FolderSource(const std::string& root, const std::vector<std::string>& paths)
      : root_(root), paths_(paths) {}
  std::string Take(size_t index) override { return ReadFile(Origin(index), kMaxFileBytes); }
  std::string Origin(size_t index) const override {
    return (fs::path(root_) / paths_[index]).string();
  }

 private:
  const std::string& root_;
  const std::vector<std::string>& paths_;
};

class ArchiveSource : public Source {
 public:
  ArchiveSource(const std::string& name, const std::vector<std::string>& paths,
                std::vector<std::string>* bytes)
      : name_(name), paths_(paths), bytes_(bytes) {}
  std::string Take(size_t index) override { return std::move((*bytes_)[index]); }
  std::string Origin(size_t index) const override { return name_ + ":" + paths_[index]; }

 private:
  const std::string& name_;
  const std::vector<std::string>& paths_;
  std::vector<std::string>* bytes_;
};

void ReadLayout(const Layout& layout, DataFormat format, const ReadOptions& options, Source* source,
                DatasetParts* parts) {
  parts->has_parts = parts->has_parts || layout.has_parts;
  for (const LayoutFile& file : layout.files) {
    std::string bytes = source->Take(file.index);
    const std::string origin = source->Origin(file.index);
    Dataset& part = PartOf(file.part, parts);
    if (!layout.class_folders) {
      Append(ParseDataset(bytes, origin, DataFormat::kAuto, options), &part);
      continue;
    }
    if (!IsValidUtf8(file.label)) {
      throw Error(ErrorKind::kInput, "data: {}: the name of the class folder is not UTF-8",
                  RepairUtf8(origin));
    }
    if (static_cast<int64_t>(bytes.size()) > kMaxTextFileBytes) {
      throw Error(ErrorKind::kInput, "data: {}: a text may have at most {} bytes, found {}", origin,
                  kMaxTextFileBytes, bytes.size());
    }
    if (part.format.empty()) part.format = DataFormatName(format);
    bytes.erase(0, bytes.size() - WithoutByteOrderMark(bytes).size());
    part.examples.push_back({std::move(bytes), file.label, origin});
  }
}

// Relative paths of the regular files under `root`, sorted. Links to folders are not followed.
std::vector<std::string> ListFiles(const std::string& root) {
  std::vector<std::string> paths;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      std::error_code passed_over;  // a link to itself, or to nothing
      if (!entry.is_regular_file(passed_over)) continue;
      paths.push_back(entry.path().lexically_relative(root).generic_string());
      if (paths.size() > kMaxFiles) {
        throw Error(ErrorKind::kInput, "data: {} holds more than {} files", root, kMaxFiles);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::kResource, "data: {}: {}", root, error.what());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void ReadFolder(const std::string& root, const ReadOptions& options, DatasetParts* parts) {
  const std::vector<std::string> paths = ListFiles(root);
  FolderSource source(root, paths);
  ReadLayout(PlanLayout(paths, root), DataFormat::kFolders, options, &source, parts);
}

void ReadArchive(ArchiveReader archive, const std::string& name, const ReadOptions& options,
                 DatasetParts* parts) {
  // A tar is read in one go, before its layout is known.
  std::vector<std::string> paths;
  std::vector<std::string> bytes;
  std::string member;
  while (archive.Next(&member)) {
    paths.push_back(member);
    bytes.push_back(archive.Read());
  }
  ArchiveSource source(name, paths, &bytes);
  ReadLayout(PlanLayout(paths, name), DataFormat::kArchive, options, &source, parts);
}

// A pipe can be read only once, so it is detected from its whole content.
void ReadPipe(const std::string& path, const ReadOptions& options, DatasetParts* parts) {
  const std::string bytes = ReadFile(path, kMaxFileBytes);
  DataFormat format = options.format;
  if (format == DataFormat::kAuto) format = DetectFormat(bytes, path);
  if (format == DataFormat::kArchive) {
    ReadArchive(ArchiveReader::OpenMemory(bytes, path), path, options, parts);
  } else {
    Append(ParseDataset(bytes, path, format, options), &parts->train);
  }
}

void ReadPath(const std::string& path, const ReadOptions& options, DatasetParts* parts) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    ReadPipe(path, options, parts);
    return;
  }
  DataFormat format = options.format;
  if (format == DataFormat::kAuto) format = DetectFormat(path);
  if (format == DataFormat::kFolders) {
    if (!fs::is_directory(status)) {
      throw Error(ErrorKind::kInput, "data: {} is not a folder", path);
    }
    ReadFolder(path, options, parts);
  } else if (format == DataFormat::kArchive) {
    ReadArchive(ArchiveReader::OpenFile(path), path, options, parts);
  } else {
    Append(ParseDataset(ReadFile(path, kMaxFileBytes), path, format, options), &parts->train);
  }
}

}  // namespace

const char* DataFormatName(DataFormat format) {
  switch (format) {
    case DataFormat::kAuto:
      return "auto";
    case DataFormat::kFolders:
      return "folders";
    case DataFormat::kArchive:
      return "archive";
    case DataFormat::kCsv:
      return "csv";
    case DataFormat::kTsv:
      return "tsv";
    case DataFormat::kJsonl:
      return "jsonl";
    case DataFormat::kLabelText:
      return "label-text";
    case DataFormat::kTextLabel:
      return "text-label";
  }
  return "auto";
}

DataFormat ParseDataFormat(std::string_view name) {
  std::vector<std::string_view> names;
  for (const DataFormat format : kFormats) {
    if (name == DataFormatName(format)) return format;
    names.emplace_back(DataFormatName(format));
  }
  throw Error(ErrorKind::kUsage, "data: the format must be one of {}, found '{}'",
              fmt::join(names, ", "), name);
}

HeaderMode ParseHeaderMode(std::string_view name) {
  if (name == "auto") return HeaderMode::kAuto;
  if (name == "yes") return HeaderMode::kYes;
  if (name == "no") return HeaderMode::kNo;
  throw Error(ErrorKind::kUsage, "data: header must be auto, yes or no, found '{}'", name);
}

DatasetParts ReadDatasetParts(const std::vector<std::string>& paths, const ReadOptions& options) {
  if (paths.empty()) throw Error(ErrorKind::kUsage, "data: no file given");
  DatasetParts parts;
  for (const std::string& path : paths) ReadPath(path, options, &parts);
  return parts;
}

Dataset ReadDataset(const std::vector<std::string>& paths, const ReadOptions& options) {
  const DataPart wanted = PartOfName(options.split);
  if (wanted == DataPart::kNone && !options.split.empty() && options.split != "all") {
    throw Error(ErrorKind::kUsage, "data: split must be train, valid, test or all, found '{}'",
                options.split);
  }
  DatasetParts parts = ReadDatasetParts(paths, options);
  const std::string names = fmt::format("{}", fmt::join(paths, ", "));
  if (options.split == "all") {
    Append(std::move(parts.valid), &parts.train);
    Append(std::move(parts.test), &parts.train);
  } else if (wanted != DataPart::kNone && !parts.has_parts) {
    throw Error(ErrorKind::kInput, "data: {} has no train, valid and test parts to choose from",
                names);
  }
  Dataset dataset = std::move(PartOf(wanted, &parts));
  if (dataset.examples.empty()) {
    throw Error(
        ErrorKind::kInput, "data: {} has no rows{}", names,
        parts.has_parts && options.split != "all"
            ? fmt::format(" in its {} part", options.split.empty() ? "train" : options.split)
            : "");
  }
  return dataset;
}

}  // namespace headlight
