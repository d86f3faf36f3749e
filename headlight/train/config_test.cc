#include "headlight/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "headlight/base/error.h"
#include "headlight/train/config_field.h"

namespace headlight {
namespace {

// A value that is legal for the field and is not its default.
std::vector<std::string> OtherValue(const ConfigField& field) {
  const std::vector<std::string> now = field.get(TrainConfig{});
  switch (field.type) {
    case FieldType::kTexts:
      return {"a folder/x.csv", "quoted \"name\", with comma"};
    case FieldType::kText:
      return {field.name == "window" ? "16:4" : "Spalte = 3"};
    case FieldType::kBoolean:
      return {now[0] == "true" ? "false" : "true"};
    case FieldType::kChoice:
      return {field.choices[0] == now[0] ? field.choices[1] : field.choices[0]};
    case FieldType::kInteger:
      return {now[0] == "7" ? "9" : "7"};
    case FieldType::kNumber:
      return {"0.0625"};
  }
  return {};
}

std::string MessageOf(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(ConfigField, NamesAreUniqueAndWhole) {
  std::set<std::string> names;
  for (const ConfigField& field : TrainFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_FALSE(field.section.empty()) << field.name;
  }
  for (const char* name : {"data", "valid", "valid-share", "seed", "threads", "epochs", "batch",
                           "lr", "dim", "layers", "heads", "head-dim", "max-len", "norm"}) {
    EXPECT_TRUE(names.count(name)) << name;
  }
}

TEST(ConfigField, DefaultsAreTheClassicExperiment) {
  const TrainConfig config;
  EXPECT_EQ(GetField(config, "dim"), "256");
  EXPECT_EQ(GetField(config, "batch"), "64");
  EXPECT_EQ(GetField(config, "lr"), "0.001");
  EXPECT_EQ(GetField(config, "epochs"), "10");
  EXPECT_EQ(GetField(config, "feed-forward"), "4x");
  EXPECT_EQ(GetField(config, "activation"), "relu");
  EXPECT_EQ(GetField(config, "norm"), "post");
  EXPECT_EQ(GetField(config, "layers"), "2");
  EXPECT_EQ(GetField(config, "heads"), "8");
  EXPECT_EQ(GetField(config, "head-dim"), "split");
  EXPECT_EQ(GetField(config, "optimizer"), "adam");
}

TEST(ConfigField, EveryFieldRoundTripsThroughTextAndToml) {
  for (const ConfigField& field : TrainFields()) {
    TrainConfig config;
    const std::vector<std::string> other = OtherValue(field);
    field.set(config, other);
    EXPECT_EQ(field.get(config), other) << field.name;
    const TrainConfig read = TrainConfigFromToml(TrainConfigToToml(config), "config.toml");
    for (const ConfigField& each : TrainFields()) {
      EXPECT_EQ(each.get(read), each.get(config)) << field.name << " changed " << each.name;
    }
    TrainConfig defaults;
    field.set(config, field.get(defaults));
    EXPECT_EQ(TrainConfigToToml(config), TrainConfigToToml(defaults)) << field.name;
  }
}

TEST(ConfigField, RefusalsSayTheRuleAndWhatWasFound) {
  TrainConfig config;
  const auto refusal = [&](const char* name, const char* value) {
    return MessageOf([&] { SetField(config, name, value); }, ErrorKind::kUsage);
  };
  EXPECT_EQ(refusal("lr", "nan"),
            "lr: must be a finite number above 0 and at most 1000000, found 'nan'");
  EXPECT_THAT(refusal("lr", "0"), testing::HasSubstr("above 0"));
  EXPECT_THAT(refusal("lr", "1e-3x"), testing::HasSubstr("found '1e-3x'"));
  EXPECT_THAT(refusal("lr", "inf"), testing::HasSubstr("found 'inf'"));
  EXPECT_THAT(refusal("heads", "0"), testing::HasSubstr("whole number from 1 to 4096"));
  EXPECT_THAT(refusal("heads", "2.5"), testing::HasSubstr("found '2.5'"));
  EXPECT_THAT(refusal("heads", "99999999999999999999"), testing::HasSubstr("whole number"));
  EXPECT_THAT(refusal("head-dim", "half"), testing::HasSubstr("or split"));
  EXPECT_THAT(refusal("kv-heads", "0"), testing::HasSubstr("from 1 to 4096, or heads"));
  EXPECT_THAT(refusal("qk-rank", "0"), testing::HasSubstr("from 1 to 65536, or head-dim"));
  EXPECT_THAT(refusal("attention", "flash"),
              testing::HasSubstr("one of fused, naive, per-head, found 'flash'"));
  EXPECT_THAT(refusal("norm", "middle"), testing::HasSubstr("one of post, pre"));
  EXPECT_THAT(refusal("causal", "maybe"), testing::HasSubstr("true or false"));
  EXPECT_THAT(refusal("dropout", "1"), testing::HasSubstr("found '1'"));
  EXPECT_THAT(refusal("head", "4"), testing::HasSubstr("the nearest is 'heads'"));
}

TEST(ConfigField, WindowsHaveOneOrTwoSides) {
  TrainConfig config;
  EXPECT_EQ(GetField(config, "window"), "off");
  for (const auto& [given, kept] : {std::pair{"16", "16"},
                                    {"0", "0"},
                                    {"8,4", "8:4"},
                                    {"8:4", "8:4"},
                                    {"4,4", "4"},
                                    {"off", "off"}}) {
    SetField(config, "window", given);
    EXPECT_EQ(GetField(config, "window"), kept) << given;
  }
  SetField(config, "window", "8,4");
  EXPECT_EQ(config.model.window, (AttentionWindow{8, 4}));
  for (const char* bad : {"", "-1", "4,", ",4", "4,5,6", "4;5", "wide", "1.5", "2000000", "1e3"}) {
    EXPECT_EQ(MessageOf([&] { SetField(config, "window", bad); }, ErrorKind::kUsage),
              std::string("window: must be off, or one or two whole numbers from 0 to 1048576 (16, "
                          "or 16,4), found '") +
                  bad + "'");
  }
}

TEST(Config, TomlRefusalsNameFileAndKey) {
  const auto refusal = [](const char* toml) {
    return MessageOf([&] { TrainConfigFromToml(toml, "run/config.toml"); }, ErrorKind::kInput);
  };
  EXPECT_THAT(refusal(""), testing::HasSubstr("format_version must be 1, found none"));
  EXPECT_THAT(refusal("format_version = 2"), testing::HasSubstr("found 2"));
  EXPECT_THAT(refusal("format_version = 1\n[model]\nheadz = 1"),
              testing::HasSubstr("run/config.toml: model.headz"));
  EXPECT_THAT(refusal("format_version = 1\n[model]\nheads = 'x'"),
              testing::AllOf(testing::HasSubstr("run/config.toml"), testing::HasSubstr("heads")));
  EXPECT_THAT(refusal("format_version = 1\n[model]\nheads = [1]"),
              testing::HasSubstr("model.heads"));
  EXPECT_THAT(refusal("format_version = 1\n[training]\nlr = nan"),
              testing::HasSubstr("found 'nan'"));
  EXPECT_THAT(refusal("format_version = 1\n[training\n"), testing::HasSubstr("line 2"));
  EXPECT_THAT(refusal("format_version = 1\nmodel = 3\n"), testing::HasSubstr("must be a table"));
}

TEST(Config, ValidationSaysWhichHeadCountsDivide) {
  TrainConfig config;
  config.data.data = {"x.csv"};
  EXPECT_NO_THROW(ValidateTrainConfig(config));
  SetField(config, "heads", "7");
  EXPECT_THAT(MessageOf([&] { ValidateTrainConfig(config); }, ErrorKind::kUsage),
              testing::HasSubstr("8"));
  SetField(config, "head-dim", "32");
  EXPECT_NO_THROW(ValidateTrainConfig(config));
}

TEST(Config, ValidationRefusesWhatSettersWouldHave) {
  TrainConfig config;
  config.data.data = {"x.csv"};
  config.training.learning_rate = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(MessageOf([&] { ValidateTrainConfig(config); }, ErrorKind::kUsage),
              testing::HasSubstr("lr"));
  config.training.learning_rate = 0.001;
  config.data.data.clear();
  EXPECT_THAT(MessageOf([&] { ValidateTrainConfig(config); }, ErrorKind::kUsage),
              testing::HasSubstr("data"));
}

TEST(Config, WarmUpIsAShareOrSteps) {
  TrainConfig config;
  EXPECT_EQ(ResolvedSchedule(config, 1000).warmup_steps, 0);
  SetField(config, "schedule", "cosine");
  EXPECT_EQ(ResolvedSchedule(config, 1000).warmup_steps, 100);
  SetField(config, "warmup", "0.2");
  EXPECT_EQ(ResolvedSchedule(config, 1000).warmup_steps, 200);
  SetField(config, "warmup", "50");
  EXPECT_EQ(ResolvedSchedule(config, 1000).warmup_steps, 50);
}

TEST(Config, ThreadsAndPathsDoNotMakeAnotherRun) {
  TrainConfig a;
  TrainConfig b;
  SetField(b, "threads", "3");
  b.data.data = {"elsewhere"};
  EXPECT_TRUE(DifferingChoices(a, b).empty());
  SetField(b, "dim", "64");
  EXPECT_EQ(DifferingChoices(a, b), std::vector<std::string>{"dim"});
}

}  // namespace
}  // namespace headlight
