// Flags that come from the library's table of choices (train/config_field.h).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/experiment/grid.h"
#include "headlight/train/config.h"
#include "headlight/train/config_field.h"

namespace headlight::app {

// Which choices a command has flags for.
bool EveryField(const ConfigField& field);
bool ReaderField(const ConfigField& field);     // how text files are read
bool TokenizerField(const ConfigField& field);  // and how their text is cut

// --seed, or a `flag` like it, of a command without the choices of training, under the rule of
// train's --seed. `seed` holds the default and must live as long as the command.
CLI::Option* AddSeed(CLI::App& command, uint64_t& seed, const std::string& help,
                     const std::string& flag = "--seed");

// --precision of a command that runs a trained model.
class PrecisionFlag {
 public:
  void AddTo(CLI::App& command);
  // Absent: the run's own.
  std::optional<Precision> Given() const;

 private:
  std::string name_;
};

// Must live as long as the command: hold it in a shared_ptr.
class TrainFlags {
 public:
  // Adds a flag for each choice that `wanted` takes, grouped by section. `defaults` is what --help
  // shows and what an absent flag means.
  void AddTo(CLI::App& command, const TrainConfig& defaults, bool (*wanted)(const ConfigField&));

  // The config with the flags that were given; what concerns several choices is not checked.
  TrainConfig Config() const;

  // The same for a grid: a number or choice given with commas (--heads 1,2,4) varies.
  struct Grid {
    TrainConfig base;
    std::vector<Variation> variations;
  };
  Grid SplitGrid() const;

  // The first flag that was given, with its dashes; empty for none.
  std::string FirstGiven() const;

  // What was given for the flag --name, or `absent`.
  std::string Given(std::string_view name, std::string_view absent) const;

 private:
  struct Flag {
    const ConfigField* field;
    std::unique_ptr<std::vector<std::string>> values;
  };

  TrainConfig defaults_;
  std::vector<Flag> flags_;
};

}  // namespace headlight::app
