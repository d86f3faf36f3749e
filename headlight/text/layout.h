// What the paths inside a folder or an archive say: which files are texts of which class, and which
// part (train, valid, test) they belong to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headlight {

enum class DataPart { kNone, kTrain, kValid, kTest };

// "train"/"training" -> kTrain; "valid"/"validation"/"val"/"dev" -> kValid; "test"/"testing" ->
// kTest; in any ASCII case. Else kNone.
DataPart PartOfName(std::string_view name);

struct LayoutFile {
  size_t index;       // into the paths given
  std::string label;  // the class folder; empty for a file that holds many rows
  DataPart part;
};

struct Layout {
  bool class_folders = false;  // else each file is a data file of its own
  bool has_parts = false;
  std::vector<LayoutFile> files;  // in the order of the paths given
};

// `paths` are relative, with "/" between parts. A class folder is one that holds files but no
// folder, and has a folder above it or siblings that are class folders too; a folder whose name is
// a part's is not one. Hidden files, macOS's own and IMDb's "unsup" are passed over. Without class
// folders: the files whose names hold a part's name ("train.csv", "stsa.binary.dev"), else a single
// file with the ending of a data file. Throws kInput, with `name`, when neither is there or only
// some files lie under a part.
Layout PlanLayout(const std::vector<std::string>& paths, const std::string& name);

}  // namespace headlight
