// The one list of a training run's choices.
//
// The flags of `train` (--head-dim), the keys of config.toml (head_dim under [model]), the choices
// that `compare --vary head-dim=split,32` can vary, the help and the shell completions all come
// from TrainFields(). A new choice is one line there.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/train/config.h"

namespace headlight {

enum class FieldType { kText, kTexts, kInteger, kNumber, kBoolean, kChoice };

struct ConfigField {
  std::string name;     // as a flag without dashes in front: "head-dim"
  std::string section;  // of config.toml and of the help: "model"
  FieldType type = FieldType::kText;
  std::string value_name;  // for the help: "N", "FILE", "split|N"; choices say themselves
  std::string help;        // one sentence
  // kChoice: what may be given. kInteger and kNumber: words that may stand for a number ("split").
  std::vector<std::string> choices;
  // kInteger and kNumber, both ends included, except `above`: then the minimum itself is not.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above = false;

  // Sets the choice from its texts: one, or for kTexts any number. kUsage, naming the choice, what
  // it takes and what was found. Rules that concern several choices are ValidateConfig's.
  std::function<void(TrainConfig&, std::span<const std::string>)> set;
  // Texts that `set` takes back to the same value.
  std::function<std::vector<std::string>(const TrainConfig&)> get;

  // "head_dim"
  std::string TomlKey() const;
  // The default as it is shown in help: "split"; "" for none.
  std::string DefaultText() const;
};

// All choices, in the order in which help and config.toml show them.
const std::vector<ConfigField>& TrainFields();

// kUsage when there is no such choice, with the nearest name.
const ConfigField& FindField(std::string_view name);
// Sets one choice by name: SetField(config, "heads", "4").
void SetField(TrainConfig& config, std::string_view name, const std::string& value);
// Joined by commas where there are several.
std::string GetField(const TrainConfig& config, std::string_view name);

}  // namespace headlight
