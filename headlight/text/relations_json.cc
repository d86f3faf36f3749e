// Reading and writing passages with gold relations as JSON lines.
#include <cstddef>
#include <nlohmann/json.hpp>

#include "headlight/base/error.h"
#include "headlight/io/byte_order_mark.h"
#include "headlight/text/relations.h"

namespace headlight {
namespace {

using Json = nlohmann::ordered_json;

// Indices from a file; a JSON integer outside i32 is not an index.
int32_t ReadIndex(const Json& value, const char* field, int64_t limit) {
  const bool integer = value.is_number_integer();
  const int64_t index = integer ? value.get<int64_t>() : -1;
  if (!integer || index < 0 || index > limit) {
    throw Error(ErrorKind::kInput, "relations: '{}' must be a token index up to {}, found {}",
                field, limit, integer ? value.dump() : "something else");
  }
  return static_cast<int32_t>(index);
}

const Json& Field(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) {
    throw Error(ErrorKind::kInput, "relations: the field '{}' is missing", name);
  }
  return *found;
}

std::string StringField(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  if (!value.is_string()) {
    throw Error(ErrorKind::kInput, "relations: '{}' must be a string, found {}", name,
                value.type_name());
  }
  return value.get<std::string>();
}

const Json& ArrayField(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  if (!value.is_array()) {
    throw Error(ErrorKind::kInput, "relations: '{}' must be an array, found {}", name,
                value.type_name());
  }
  return value;
}

GoldRelation ReadRelation(const Json& entry, int64_t tokens) {
  if (!entry.is_object()) {
    throw Error(ErrorKind::kInput, "relations: a relation must be an object, found {}",
                entry.type_name());
  }
  GoldRelation gold{};
  gold.kind = RelationFromName(StringField(entry, "relation"));
  gold.from = ReadIndex(Field(entry, "from"), "from", tokens - 1);
  const Json& to = ArrayField(entry, "to");
  if (to.size() != 2) {
    throw Error(ErrorKind::kInput, "relations: 'to' must be [begin, end], found {} numbers",
                to.size());
  }
  gold.to_begin = ReadIndex(to[0], "to", tokens - 1);
  gold.to_end = ReadIndex(to[1], "to", tokens);
  if (gold.to_begin >= gold.to_end) {
    throw Error(ErrorKind::kInput, "relations: 'to' must not be empty, found [{}, {}]",
                gold.to_begin, gold.to_end);
  }
  return gold;
}

RelationsExample ReadExample(const Json& line) {
  if (!line.is_object()) {
    throw Error(ErrorKind::kInput, "relations: a line must be an object, found {}",
                line.type_name());
  }
  RelationsExample example;
  example.text = StringField(line, "text");
  example.label = StringField(line, "label");
  for (const Json& token : ArrayField(line, "tokens")) {
    if (!token.is_string()) {
      throw Error(ErrorKind::kInput, "relations: a token must be a string, found {}",
                  token.type_name());
    }
    example.tokens.push_back(token.get<std::string>());
  }
  const auto tokens = static_cast<int64_t>(example.tokens.size());
  for (const Json& entry : ArrayField(line, "relations")) {
    example.relations.push_back(ReadRelation(entry, tokens));
  }
  return example;
}

}  // namespace

std::string FormatRelations(const std::vector<RelationsExample>& examples) {
  std::string lines;
  for (const RelationsExample& example : examples) {
    Json line;
    line["text"] = example.text;
    line["label"] = example.label;
    line["tokens"] = example.tokens;
    Json relations = Json::array();
    for (const GoldRelation& gold : example.relations) {
      Json entry;
      entry["relation"] = RelationName(gold.kind);
      entry["from"] = gold.from;
      entry["to"] = {gold.to_begin, gold.to_end};
      relations.push_back(std::move(entry));
    }
    line["relations"] = std::move(relations);
    lines += line.dump();
    lines += '\n';
  }
  return lines;
}

std::vector<RelationsExample> ParseRelations(std::string_view bytes, std::string_view origin) {
  std::vector<RelationsExample> examples;
  int64_t line_number = 0;
  bytes = WithoutByteOrderMark(bytes);
  while (!bytes.empty()) {
    ++line_number;
    const size_t end = bytes.find('\n');
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      examples.push_back(ReadExample(Json::parse(line)));
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorKind::kInput,
                  "{}:{}: relations: a line must be one JSON object in UTF-8, as `data make "
                  "relations` writes it",
                  origin, line_number);
    } catch (const Error& error) {
      throw Error(error.kind(), "{}:{}: {}", origin, line_number, error.what());
    }
  }
  return examples;
}

}  // namespace headlight
