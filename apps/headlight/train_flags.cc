#include "apps/headlight/train_flags.h"

#include <fmt/format.h>

#include <set>

#include "headlight/base/error.h"

namespace headlight::app {
namespace {

bool IsOneOf(const ConfigField& field, const std::set<std::string>& names) {
  return names.contains(field.name);
}

std::string TypeName(const ConfigField& field) {
  if (field.type == FieldType::kChoice) return fmt::format("{}", fmt::join(field.choices, "|"));
  return field.value_name.empty() ? "N" : field.value_name;
}

}  // namespace

bool EveryField(const ConfigField&) { return true; }

bool ReaderField(const ConfigField& field) {
  return IsOneOf(field,
                 {"format", "text-column", "label-column", "header", "text-field", "label-field"});
}

bool TokenizerField(const ConfigField& field) {
  return ReaderField(field) || IsOneOf(field, {"tokenizer", "case", "html"});
}

void TrainFlags::AddTo(CLI::App& command, const TrainConfig& defaults,
                       bool (*wanted)(const ConfigField&)) {
  defaults_ = defaults;
  for (const ConfigField& field : TrainFields()) {
    if (!wanted(field)) continue;
    flags_.push_back({&field, std::make_unique<std::vector<std::string>>()});
    CLI::Option* option = command.add_option("--" + field.name, *flags_.back().values, field.help);
    option->group(field.section)->type_name(TypeName(field));
    option->default_str(GetField(defaults, field.name));
    if (field.type == FieldType::kTexts) {
      option->take_all();
    } else {
      option->expected(1)->take_last();
    }
  }
}

TrainConfig TrainFlags::Config() const {
  TrainConfig config = defaults_;
  for (const Flag& flag : flags_) {
    if (!flag.values->empty()) flag.field->set(config, *flag.values);
  }
  return config;
}

TrainFlags::Grid TrainFlags::SplitGrid() const {
  Grid grid{defaults_, {}};
  for (const Flag& flag : flags_) {
    if (flag.values->empty()) continue;
    const bool text = flag.field->type == FieldType::kText || flag.field->type == FieldType::kTexts;
    if (!text && flag.values->front().find(',') != std::string::npos) {
      grid.variations.push_back(ParseVariation(flag.field->name + "=" + flag.values->front()));
    } else {
      flag.field->set(grid.base, *flag.values);
    }
  }
  return grid;
}

std::string TrainFlags::FirstGiven() const {
  for (const Flag& flag : flags_) {
    if (!flag.values->empty()) return "--" + flag.field->name;
  }
  return "";
}

std::string TrainFlags::Given(std::string_view name, std::string_view absent) const {
  for (const Flag& flag : flags_) {
    if (flag.field->name == name && !flag.values->empty()) return flag.values->front();
  }
  return std::string(absent);
}

CLI::Option* AddSeed(CLI::App& command, uint64_t& seed, const std::string& help,
                     const std::string& flag) {
  const auto set = [&seed, flag](const std::string& text) {
    constexpr std::string_view kField = "seed";
    TrainConfig config;
    try {
      SetField(config, kField, text);
    } catch (const Error& error) {  // "seed: must be ..."; here under the name of this flag
      throw Error(error.kind(), "{}{}", flag, error.what() + kField.size());
    }
    seed = static_cast<uint64_t>(config.training.seed);
  };
  return command.add_option_function<std::string>(flag, set, help)
      ->type_name("N")
      ->default_str(fmt::format("{}", seed));
}

void PrecisionFlag::AddTo(CLI::App& command) {
  command
      .add_option("--precision", name_,
                  "Of the operands of its products, fp32 or bf16 (default: as it was trained)")
      ->type_name("fp32|bf16");
}

std::optional<Precision> PrecisionFlag::Given() const {
  if (name_.empty()) return std::nullopt;
  return Parse<Precision>(name_);
}

}  // namespace headlight::app
