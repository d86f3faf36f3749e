#include "headlight/text/text_encoder.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "headlight/base/error.h"
#include "headlight/base/threads.h"
#include "headlight/io/file.h"
#include "headlight/text/unicode.h"

namespace headlight {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "headlight text encoder";
constexpr int64_t kFormatVersion = 1;
// Of the `auto` tokenizer and of cleaning and normalising: raised when they change, so that an old
// run is refused rather than read with other ids.
constexpr int64_t kRulesVersion = 1;
constexpr int64_t kMaxFileBytes = int64_t{128} << 20;
constexpr int kMaxDepth = 4;
constexpr int64_t kMaxLenLimit = int64_t{1} << 24;
constexpr int64_t kGrain = 64;  // texts per task

// Reads fields of a JSON object and says what is wrong with them.
class FieldReader {
 public:
  FieldReader(const Json& object, const std::string& name) : object_(object), name_(name) {
    if (!object.is_object()) Fail("must be an object");
  }

  const Json& Get(const char* field) const {
    const auto at = object_.find(field);
    if (at == object_.end()) {
      throw Error(ErrorKind::kInput, "text encoder: {}: field '{}' is missing", name_, field);
    }
    return *at;
  }
  int64_t Integer(const char* field, int64_t low, int64_t high) const {
    const Json& value = Get(field);
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high)) ||
        value.get<int64_t>() < low || value.get<int64_t>() > high) {
      throw Error(ErrorKind::kInput,
                  "text encoder: {}: field '{}' must be a whole number in [{}, {}]", name_, field,
                  low, high);
    }
    return value.get<int64_t>();
  }
  std::string String(const char* field) const {
    const Json& value = Get(field);
    if (!value.is_string()) {
      throw Error(ErrorKind::kInput, "text encoder: {}: field '{}' must be a string", name_, field);
    }
    return value.get<std::string>();
  }
  // The index in `names` of the string that the field holds.
  size_t OneOf(const char* field, std::initializer_list<std::string_view> names) const {
    const std::string value = String(field);
    const auto* at = std::find(names.begin(), names.end(), value);
    if (at == names.end()) {
      throw Error(ErrorKind::kInput, "text encoder: {}: field '{}' must be one of {}, found '{}'",
                  name_, field, fmt::join(names, ", "), value);
    }
    return static_cast<size_t>(at - names.begin());
  }
  std::vector<std::string> Strings(const char* field) const {
    const Json& value = Get(field);
    if (!value.is_array()) {
      throw Error(ErrorKind::kInput, "text encoder: {}: field '{}' must be a list", name_, field);
    }
    std::vector<std::string> strings;
    strings.reserve(value.size());
    for (const Json& item : value) {
      if (!item.is_string()) {
        throw Error(ErrorKind::kInput, "text encoder: {}: field '{}' must hold strings only", name_,
                    field);
      }
      strings.push_back(item.get<std::string>());
    }
    return strings;
  }
  [[noreturn]] void Fail(const char* rule) const {
    throw Error(ErrorKind::kInput, "text encoder: {}: {}", name_, rule);
  }

 private:
  const Json& object_;
  const std::string& name_;
};

// Refuses deep nesting while it parses: a small file could take a lot of memory by it.
Json ParseShallow(std::string_view json, const std::string& name) {
  if (json.size() > static_cast<size_t>(kMaxFileBytes)) {
    throw Error(ErrorKind::kInput, "text encoder: {}: at most {} bytes are read, found {}", name,
                kMaxFileBytes, json.size());
  }
  const auto check_depth = [&name](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) {
      throw Error(ErrorKind::kInput, "text encoder: {}: nested too deep", name);
    }
    return true;
  };
  try {
    return Json::parse(json.begin(), json.end(), check_depth);
  } catch (const Json::exception&) {
    throw Error(ErrorKind::kInput, "text encoder: {}: is not JSON, or cut off", name);
  }
}

TokenizerOptions ReadTokenizer(const Json& object, const std::string& name) {
  const FieldReader fields(object, name);
  fields.Integer("rules_version", kRulesVersion, kRulesVersion);
  constexpr TokenizerKind kKinds[] = {TokenizerKind::kWords, TokenizerKind::kCharacters,
                                      TokenizerKind::kBytes, TokenizerKind::kAuto};
  TokenizerOptions options;
  options.kind = kKinds[fields.OneOf("kind", {"words", "characters", "bytes", "auto"})];
  options.letter_case =
      fields.OneOf("letter_case", {"keep", "lower"}) == 0 ? LetterCase::kKeep : LetterCase::kLower;
  options.html =
      fields.OneOf("html", {"keep", "clean"}) == 0 ? HtmlHandling::kKeep : HtmlHandling::kClean;
  return options;
}

void CheckMaxLen(int64_t max_len) {
  if (max_len < 1 || max_len > kMaxLenLimit) {
    throw Error(ErrorKind::kUsage, "text encoder: max_len must be in [1, {}], found {}",
                kMaxLenLimit, max_len);
  }
}

}  // namespace

TextEncoder::TextEncoder(const TokenizerOptions& tokenizer, Vocabulary vocabulary,
                         std::vector<std::string> labels, int64_t max_len, std::string icu_version)
    : tokenizer_(tokenizer),
      vocabulary_(std::move(vocabulary)),
      labels_(std::move(labels)),
      max_len_(max_len),
      icu_version_(std::move(icu_version)) {
  for (size_t i = 0; i < labels_.size(); ++i) {
    label_ids_.emplace(labels_[i], static_cast<int32_t>(i));
  }
}

TextEncoder TextEncoder::Build(const Dataset& train, const TextEncoderOptions& options) {
  CheckMaxLen(options.max_len);
  std::vector<std::string> labels = train.Labels();
  if (labels.size() < 2) {
    throw Error(ErrorKind::kInput,
                "text encoder: the training data must have at least two labels, found {}{}{}",
                labels.size(), labels.empty() ? "" : " ('" + labels[0] + "')", DroppedNote(train));
  }
  for (const std::string& label : labels) {
    if (!IsValidUtf8(label)) {
      throw Error(ErrorKind::kInput, "text encoder: the label '{}' is not UTF-8",
                  RepairUtf8(label));
    }
  }
  const Tokenizer tokenizer(options.tokenizer);
  // Sums do not depend on the order, so neither does the vocabulary on the workers.
  std::vector<TokenCounts> counts(static_cast<size_t>(NumThreads()));
  ParallelForRange(static_cast<int64_t>(train.examples.size()), kGrain,
                   [&](int64_t begin, int64_t end, int worker) {
                     for (int64_t i = begin; i < end; ++i) {
                       const Example& example = train.examples[static_cast<size_t>(i)];
                       if (example.label.empty()) continue;
                       counts[static_cast<size_t>(worker)].Add(tokenizer.Tokenize(example.text));
                     }
                   });
  for (size_t i = 1; i < counts.size(); ++i) counts[0].Merge(counts[i]);
  Vocabulary vocabulary = Vocabulary::Build(counts[0], options.vocabulary);
  if (counts[0].counts().empty()) {
    throw Error(ErrorKind::kInput, "text encoder: the training data has no token");
  }
  return {options.tokenizer, std::move(vocabulary), std::move(labels), options.max_len,
          IcuVersion()};
}

std::string TextEncoder::ToJson() const {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["format_version"] = kFormatVersion;
  json["icu_version"] = icu_version_;
  const TokenizerOptions& options = tokenizer_.options();
  json["tokenizer"] = {
      {"kind", TokenizerKindName(options.kind)},
      {"letter_case", options.letter_case == LetterCase::kLower ? "lower" : "keep"},
      {"html", options.html == HtmlHandling::kClean ? "clean" : "keep"},
      {"rules_version", kRulesVersion}};
  json["max_len"] = max_len_;
  json["labels"] = labels_;
  json["tokens"] = vocabulary_.tokens();
  return json.dump(1) + "\n";
}

TextEncoder TextEncoder::FromJson(std::string_view json, const std::string& name) {
  const Json root = ParseShallow(json, name);
  const FieldReader fields(root, name);
  fields.OneOf("format", {kFormat});
  fields.Integer("format_version", kFormatVersion, kFormatVersion);
  const TokenizerOptions tokenizer = ReadTokenizer(fields.Get("tokenizer"), name);
  std::vector<std::string> labels = fields.Strings("labels");
  std::vector<std::string> sorted = labels;
  std::sort(sorted.begin(), sorted.end());
  if (labels.size() < 2 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() ||
      sorted[0].empty()) {
    fields.Fail("field 'labels' must hold two or more different labels, none of them empty");
  }
  const int64_t max_len = fields.Integer("max_len", 1, kMaxLenLimit);
  std::string icu_version = fields.String("icu_version");
  try {
    return {tokenizer, Vocabulary::FromTokens(fields.Strings("tokens")), std::move(labels), max_len,
            std::move(icu_version)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    throw Error(ErrorKind::kInput, "text encoder: {}: {}", name, error.what());
  }
}

void TextEncoder::Save(const std::string& path) const { WriteFileAtomically(path, ToJson()); }

TextEncoder TextEncoder::Load(const std::string& path) {
  return FromJson(ReadRegularFile(path, kMaxFileBytes), path);
}

std::vector<int32_t> TextEncoder::Encode(std::string_view text) const {
  return EncodeWithTokens(text).ids;
}

EncodedText TextEncoder::EncodeWithTokens(std::string_view text) const {
  EncodedText encoded;
  encoded.tokens = tokenizer_.Tokenize(text);
  if (encoded.tokens.size() > static_cast<size_t>(max_len_)) {
    encoded.tokens.resize(static_cast<size_t>(max_len_));
  }
  encoded.ids.reserve(encoded.tokens.size());
  for (const Token& token : encoded.tokens) encoded.ids.push_back(vocabulary_.Id(token.text));
  return encoded;
}

EncodedDataset TextEncoder::EncodeDataset(const Dataset& dataset) const {
  struct Row {
    std::vector<int32_t> ids;
    bool cut = false;
  };
  std::vector<Row> rows(dataset.examples.size());
  ParallelForRange(static_cast<int64_t>(rows.size()), kGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      const std::vector<Token> tokens = tokenizer_.Tokenize(dataset.examples[at].text);
      const size_t length = std::min(tokens.size(), static_cast<size_t>(max_len_));
      rows[at].cut = length < tokens.size();
      rows[at].ids.reserve(length);
      for (size_t j = 0; j < length; ++j) rows[at].ids.push_back(vocabulary_.Id(tokens[j].text));
    }
  });
  EncodedDataset encoded;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Example& example = dataset.examples[i];
    if (rows[i].ids.empty() || example.label.empty()) {
      ++encoded.skipped;
      continue;
    }
    const int32_t label = LabelId(example.label);
    if (label < 0) {
      throw Error(ErrorKind::kInput,
                  "text encoder: {}: label '{}' does not occur in the training data",
                  example.origin, example.label);
    }
    encoded.ids.insert(encoded.ids.end(), rows[i].ids.begin(), rows[i].ids.end());
    encoded.offsets.push_back(static_cast<int64_t>(encoded.ids.size()));
    encoded.labels.push_back(label);
    encoded.rows.push_back(static_cast<int64_t>(i));
    encoded.cut += rows[i].cut ? 1 : 0;
  }
  encoded.unknown_tokens = std::count(encoded.ids.begin(), encoded.ids.end(), Vocabulary::kUnknown);
  return encoded;
}

int32_t TextEncoder::LabelId(std::string_view label) const {
  const auto at = label_ids_.find(label);
  return at == label_ids_.end() ? -1 : at->second;
}

}  // namespace headlight
