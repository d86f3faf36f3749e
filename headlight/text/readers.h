// From files, folders and archives to a Dataset.
//
//   folders     class folders with one text per file; train/, valid/ and test/ may lie above them
//   archive     the same inside .tar(.gz|.bz2|.xz|.zst) or .zip, read without unpacking to disk
//   csv, tsv    RFC 4180; a header or none
//   jsonl       one object a line
//   label-text  "LABEL text" lines
//   text-label  "text<TAB>label" lines
//
// A directory without class folders that holds files named train.*, valid.* (or dev.*) and test.*
// is read as these parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headlight/text/dataset.h"

namespace headlight {

enum class DataFormat { kAuto, kFolders, kArchive, kCsv, kTsv, kJsonl, kLabelText, kTextLabel };
// "auto", "folders", "archive", "csv", "tsv", "jsonl", "label-text", "text-label".
const char* DataFormatName(DataFormat format);
// Throws kUsage for another name.
DataFormat ParseDataFormat(std::string_view name);

enum class HeaderMode { kAuto, kYes, kNo };
// "auto", "yes", "no"; throws kUsage for another name.
HeaderMode ParseHeaderMode(std::string_view name);

struct ReadOptions {
  DataFormat format = DataFormat::kAuto;
  // Which part of a source that has train/valid/test parts ReadDataset takes: "train", "valid"
  // ("validation", "val", "dev" mean the same), "test", or "all". Empty: the training part where
  // there are parts, else everything. A source without parts takes only empty and "all".
  std::string split;
  // CSV and TSV: a column's name, or its number from 1. Empty: chosen by the usual names, then by
  // what the columns hold.
  std::string text_column;
  std::string label_column;
  HeaderMode header = HeaderMode::kAuto;
  // JSONL: names of the fields; empty: the usual names.
  std::string text_field;
  std::string label_field;
};

// The parts of a source. One without parts is all train.
struct DatasetParts {
  Dataset train;
  Dataset valid;
  Dataset test;
  bool has_parts = false;
};

// Reads all paths, one after another, in the order of the files (folders: by name). Throws kInput
// when a file is not what it should be (the message names file and line), kResource when it cannot
// be read, kUsage when an option does not fit. An empty text or label is kept: see DropUnusable.
DatasetParts ReadDatasetParts(const std::vector<std::string>& paths, const ReadOptions& options);
// The part that options.split names. Throws kInput when it has no rows.
Dataset ReadDataset(const std::vector<std::string>& paths, const ReadOptions& options);

// What `path` holds, by content. Throws kInput when nothing fits, kResource when unreadable.
DataFormat DetectFormat(const std::string& path);
// The same for the bytes of a regular file; `name` (its ending breaks ties) is for messages.
DataFormat DetectFormat(std::string_view bytes, const std::string& name);
// Throws kInput for UTF-16 and UTF-32, zero bytes near the beginning, and lines that CRs alone end.
void CheckIsText(std::string_view bytes, const std::string& name);
// Parses one file's bytes. `format` is one of the five formats of single text files.
Dataset ParseDataset(std::string_view bytes, const std::string& name, DataFormat format,
                     const ReadOptions& options);

}  // namespace headlight
