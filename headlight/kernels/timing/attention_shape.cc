#include "headlight/kernels/timing/attention_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "headlight/base/error.h"
#include "headlight/base/random.h"
#include "headlight/kernels/half_formats.h"

namespace headlight {
namespace {

constexpr double kLargestBytes = 4.0 * (int64_t{1} << 30);
constexpr int64_t kLargestNumber = int64_t{1} << 20;  // 1048576
constexpr size_t kMostShapes = 10000;
constexpr int64_t kListBlock = 64;  // queries and keys of a block of `blocks=`

enum class ValueOf { kNone, kNumberSuffix, kAfterEquals, kOptionalAfterEquals };

struct WordRule {
  const char* name;
  ValueOf value;
  const char* form;  // as in messages and help
  const char* meaning;
  const char* values;  // that are allowed; empty: there is none
  // Returns false when the value is none.
  std::function<bool(AttentionShape&, std::string_view value)> read;
  // Empty: the word is not needed.
  std::function<std::string(const AttentionShape&)> write;
};

template <typename T>
bool ReadNumber(std::string_view text, T* number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped == end && !text.empty();
}

bool ReadWindow(AttentionShape& shape, std::string_view value) {
  const size_t comma = value.find(',');
  if (comma == std::string_view::npos) return false;
  Mask::Window window;
  if (!ReadNumber(value.substr(0, comma), &window.left)) return false;
  if (!ReadNumber(value.substr(comma + 1), &window.right)) return false;
  if (std::min(window.left, window.right) < 0) return false;
  if (std::max(window.left, window.right) > kLargestNumber) return false;
  shape.window = window;
  return true;
}

bool ReadCausal(AttentionShape& shape, std::string_view value) {
  if (!value.empty() && value != "end" && value != "start") return false;
  shape.causal = value == "start" ? Mask::Causal::kAlignedToStart : Mask::Causal::kAlignedToEnd;
  return true;
}

bool ReadDropout(AttentionShape& shape, std::string_view value) {
  return ReadNumber(value, &shape.dropout) && shape.dropout > 0 && shape.dropout < 1;
}

// One word says what type the tensors are of.
bool ReadDType(DType dtype, AttentionShape& shape) {
  if (shape.dtype != DType::kF32) return false;
  shape.dtype = dtype;
  return true;
}

bool ReadStored(AttentionShape& shape, std::string_view value) {
  if (value == DTypeName(DType::kBF16)) return ReadDType(DType::kBF16, shape);
  return value == DTypeName(DType::kF16) && ReadDType(DType::kF16, shape);
}

std::string WriteCausal(const AttentionShape& shape) {
  if (shape.causal == Mask::Causal::kNone) return "";
  return shape.causal == Mask::Causal::kAlignedToStart ? "causal=start" : "causal";
}

// A word that is a number of at least 1: "b32", or with `equals` "keys=100". 0 in the shape means
// that it was not given.
WordRule Count(const char* name, const char* form, const char* meaning, int64_t AttentionShape::*to,
               bool equals = false) {
  const auto read = [to](AttentionShape& shape, std::string_view value) {
    return ReadNumber(value, &(shape.*to)) && shape.*to >= 1 && shape.*to <= kLargestNumber;
  };
  const auto write = [=](const AttentionShape& shape) {
    return shape.*to == 0 ? "" : fmt::format("{}{}{}", name, equals ? "=" : "", shape.*to);
  };
  return {name,
          equals ? ValueOf::kAfterEquals : ValueOf::kNumberSuffix,
          form,
          meaning,
          "a whole number from 1 to 1048576",
          read,
          write};
}

WordRule Flag(const char* name, const char* meaning, bool AttentionShape::*to) {
  const auto read = [to](AttentionShape& shape, std::string_view) { return shape.*to = true; };
  const auto write = [=](const AttentionShape& shape) {
    return std::string(shape.*to ? name : "");
  };
  return {name, ValueOf::kNone, name, meaning, "", read, write};
}

bool ReadImplementation(AttentionShape& shape, std::string_view value) {
  for (const auto which : {AttentionImplementation::kNaive, AttentionImplementation::kPerHead}) {
    if (value == Name(which)) shape.implementation = which;
  }
  return shape.implementation != AttentionImplementation::kFused;
}

std::string WriteImplementation(const AttentionShape& shape) {
  if (shape.implementation == AttentionImplementation::kFused) return "";
  return fmt::format("by={}", Name(shape.implementation));
}

std::vector<WordRule> MakeRules() {
  using S = AttentionShape;
  return {
      Count("b", "b<N>", "sequences (1)", &S::batch),
      Count("h", "h<N>", "heads (1)", &S::heads),
      Count("kv", "kv<N>", "key/value heads (as heads)", &S::kv_heads),
      Count("q", "q<N>", "queries of a sequence (as n)", &S::queries),
      Count("n", "n<N>", "keys of a sequence", &S::keys),
      Count("d", "d<N>", "width of a head's query and key", &S::head_dim),
      Count("dv", "dv<N>", "width of a head's value (as d)", &S::value_dim),
      {"f64", ValueOf::kNone, "f64", "double precision (f32)",
       "without stored=", [](S& shape, std::string_view) { return ReadDType(DType::kF64, shape); },
       [](const S& shape) { return std::string(shape.dtype == DType::kF64 ? "f64" : ""); }},
      {"bf16", ValueOf::kNone, "bf16", "operands of products in bf16 (f32)", "",
       [](S& shape, std::string_view) {
         shape.precision = Precision::kBF16;
         return true;
       },
       [](const S& shape) {
         return std::string(shape.precision == Precision::kBF16 ? "bf16" : "");
       }},
      {"stored", ValueOf::kAfterEquals, "stored=bf16|f16", "tensors lie in bf16 or f16 (f32)",
       "bf16 or f16, and not beside f64", ReadStored,
       [](const S& shape) {
         return IsStorage(shape.dtype) ? fmt::format("stored={}", DTypeName(shape.dtype)) : "";
       }},
      {"causal", ValueOf::kOptionalAfterEquals, "causal[=end|start]",
       "no later keys; the last query sees the last key, or the first the first", "end or start",
       ReadCausal, WriteCausal},
      {"window", ValueOf::kAfterEquals, "window=<L>,<R>", "only keys from L before to R after",
       "two whole numbers from 0 to 1048576", ReadWindow,
       [](const S& shape) {
         return shape.window ? fmt::format("window={},{}", shape.window->left, shape.window->right)
                             : "";
       }},
      Count("keys", "keys=<N>", "of n keys all but the first N are masked", &S::key_length, true),
      Count("blocks", "blocks=<P>", "a list of blocks of 64 x 64 keeps P of a hundred",
            &S::kept_blocks, true),
      Flag("ragged", "lengths evenly from n / 8 up", &S::ragged),
      Flag("bhnd", "tensors lie [batch, heads, n, d] ([batch, n, heads, d])", &S::bhnd),
      Flag("relative", "tables of relative keys and values", &S::relative),
      {"dropout", ValueOf::kAfterEquals, "dropout=<R>", "dropout on weights, rate between 0 and 1",
       "a number above 0 and below 1", ReadDropout,
       [](const S& shape) {
         return shape.dropout > 0 ? fmt::format("dropout={}", shape.dropout) : "";
       }},
      Flag("statistics", "statistics of all heads", &S::statistics),
      Count("weights", "weights=<N>", "the weights of N heads are written", &S::weights, true),
      Flag("backward", "the backward pass", &S::backward),
      {"by", ValueOf::kAfterEquals, "by=naive|per-head",
       "through n x n matrices: of all heads at once, or head by head", "naive or per-head",
       ReadImplementation, WriteImplementation},
  };
}

const std::vector<WordRule>& Rules() {
  static const std::vector<WordRule> rules = MakeRules();
  return rules;
}

std::string AllForms() {
  std::string forms;
  for (const WordRule& rule : Rules()) forms += (forms.empty() ? "" : " ") + std::string(rule.form);
  return forms;
}

// Text of unknown origin inside a message: short, and nothing that a terminal would obey.
std::string Quoted(std::string_view text) {
  std::string quoted(text.substr(0, 80));
  for (char& c : quoted) {
    if (c < ' ' || c > '~') c = '?';
  }
  return '"' + quoted + (text.size() > 80 ? "...\"" : "\"");
}

struct SplitWord {
  const WordRule* rule = nullptr;
  std::string_view value;
};

SplitWord Split(std::string_view word) {
  const size_t equals = word.find('=');
  std::string_view name = word.substr(0, equals);
  std::string_view value =
      equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (equals == std::string_view::npos) {
    for (const WordRule& rule : Rules()) {
      if (rule.name == word && rule.value != ValueOf::kNumberSuffix) return {&rule, value};
    }
    // What follows the letters is the number: b32.
    const size_t digit =
        std::min(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), name.size());
    value = name.substr(digit);
    name = name.substr(0, digit);
  }
  for (const WordRule& rule : Rules()) {
    if (rule.name != name) continue;
    const bool has_equals = equals != std::string_view::npos;
    if (has_equals ==
            (rule.value == ValueOf::kAfterEquals || rule.value == ValueOf::kOptionalAfterEquals) &&
        (has_equals || rule.value == ValueOf::kNumberSuffix)) {
      return {&rule, value};
    }
  }
  return {};
}

// A value after '=' is never empty.
bool ReadValue(const SplitWord& split, std::string_view word, AttentionShape& shape) {
  if (word.ends_with('=')) return false;
  return split.rule->read(shape, split.value);
}

// What is wrong with words that each are right; empty: nothing.
std::string Contradiction(const AttentionShape& shape) {
  if (shape.keys == 0) return "n<N>, the number of keys, is missing";
  if (shape.head_dim == 0) return "d<N>, the width of a head, is missing";
  if (shape.heads % shape.KvHeads() != 0) {
    return fmt::format("kv must divide h, found kv{} and h{}", shape.KvHeads(), shape.heads);
  }
  if (shape.key_length > shape.keys) {
    return fmt::format("keys= must be at most n, found {} and n{}", shape.key_length, shape.keys);
  }
  if (shape.ragged && (shape.queries > 0 || shape.key_length > 0)) {
    return "ragged goes with neither q<N> nor keys=<N>";
  }
  if (shape.ragged && shape.bhnd) return "ragged goes not with bhnd";
  if (shape.kept_blocks > 100) {
    return fmt::format("blocks= must be at most 100, found {}", shape.kept_blocks);
  }
  if (shape.kept_blocks > 0 && (shape.causal != Mask::Causal::kNone || shape.window ||
                                shape.key_length > 0 || shape.ragged)) {
    return "blocks=<P> goes with no other mask and not with ragged";
  }
  if (shape.implementation != AttentionImplementation::kFused) {
    if (shape.kept_blocks > 0 || shape.statistics || shape.weights > 0 || shape.bhnd) {
      return "by= goes with neither blocks=, statistics, weights= nor bhnd";
    }
  }
  if (IsStorage(shape.dtype) &&
      (shape.relative || shape.implementation != AttentionImplementation::kFused)) {
    return "stored= goes with neither relative nor by=";
  }
  if (shape.weights > shape.heads) {
    return fmt::format("weights= must be at most h, found {} and h{}", shape.weights, shape.heads);
  }
  if (shape.backward && (shape.statistics || shape.weights > 0)) {
    return "statistics and weights are of the forward pass: leave out backward";
  }
  if (shape.Bytes() > kLargestBytes) {
    return fmt::format("tensors would take {:.1f} GiB, more than 4: make b or n smaller",
                       shape.Bytes() / (int64_t{1} << 30));
  }
  return "";
}

void FillTable(Tensor& table, DType dtype, uint64_t stream) {
  RandomStream random(1, stream);
  DispatchFloat(dtype, [&]<typename T>() {
    T* data = table.data<T>();
    for (int64_t i = 0; i < table.elements(); ++i) data[i] = static_cast<T>(random.Normal());
  });
}

// Keys that query `query` of a sequence keeps.
int64_t KeptKeys(const AttentionShape& shape, int64_t query, int64_t queries, int64_t keys) {
  int64_t begin = 0, end = keys;
  if (shape.key_length > 0) end = std::min(end, shape.key_length);
  const bool to_end = shape.causal == Mask::Causal::kAlignedToEnd;
  const int64_t place = query + (to_end ? keys - queries : 0);
  if (shape.causal != Mask::Causal::kNone) end = std::min(end, place + 1);
  if (shape.window) {
    begin = std::max(begin, place - shape.window->left);
    end = std::min(end, place + shape.window->right + 1);
  }
  return std::max(int64_t{0}, end - begin);
}

int64_t BlocksOf(int64_t tokens) { return (tokens + kListBlock - 1) / kListBlock; }

// Of a row of blocks.
int64_t KeptBlocks(const AttentionShape& shape) {
  return std::max<int64_t>(1, BlocksOf(shape.keys) * shape.kept_blocks / 100);
}

// The key blocks that a row of blocks keeps, ascending.
std::vector<int32_t> ListedBlocks(const AttentionShape& shape, int64_t query_block) {
  const int64_t blocks = BlocksOf(shape.keys);
  const int64_t kept = KeptBlocks(shape);
  std::vector<int32_t> listed;
  for (int64_t i = 0; i < kept; ++i) {
    listed.push_back(static_cast<int32_t>((query_block + i * blocks / kept) % blocks));
  }
  std::sort(listed.begin(), listed.end());
  return listed;
}

Mask::BlockList MakeBlockList(const AttentionShape& shape) {
  Mask::BlockList list;
  list.query_block = list.key_block = kListBlock;
  list.offsets.reserve(static_cast<size_t>(shape.batch * BlocksOf(shape.Queries()) + 1));
  list.key_blocks.reserve(list.offsets.capacity() * static_cast<size_t>(KeptBlocks(shape)));
  list.offsets = {0};
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (int64_t block = 0; block < BlocksOf(shape.Queries()); ++block) {
      const std::vector<int32_t> listed = ListedBlocks(shape, block);
      list.key_blocks.insert(list.key_blocks.end(), listed.begin(), listed.end());
      list.offsets.push_back(static_cast<int64_t>(list.key_blocks.size()));
    }
  }
  return list;
}

// Scores that the list of blocks keeps in one sequence and head.
double ListedScores(const AttentionShape& shape) {
  double kept = 0;
  for (int64_t block = 0; block < BlocksOf(shape.Queries()); ++block) {
    const int64_t queries = std::min(kListBlock, shape.Queries() - block * kListBlock);
    for (const int32_t key_block : ListedBlocks(shape, block)) {
      const int64_t keys = std::min(kListBlock, shape.keys - key_block * kListBlock);
      kept += static_cast<double>(queries * keys);
    }
  }
  return kept;
}

double KeptKeysOf(const AttentionShape& shape, int64_t sequence) {
  if (shape.kept_blocks > 0) return ListedScores(shape);
  const int64_t queries = shape.QueriesOf(sequence), keys = shape.KeysOf(sequence);
  double kept = 0;
  for (int64_t query = 0; query < queries; ++query) {
    kept += static_cast<double>(KeptKeys(shape, query, queries, keys));
  }
  return kept;
}

}  // namespace

int64_t AttentionShape::KeysOf(int64_t sequence) const {
  if (!ragged) return keys;
  return std::max(int64_t{1}, keys / 8 + (keys - keys / 8) * sequence / batch);
}

int64_t AttentionShape::QueriesOf(int64_t sequence) const {
  return ragged ? KeysOf(sequence) : Queries();
}

double AttentionShape::Bytes() const {
  const auto real = [](int64_t number) { return static_cast<double>(number); };
  const double query = real(batch) * real(Queries()) * real(heads) * real(head_dim + ValueDim());
  const double key = real(batch) * real(keys) * real(KvHeads()) * real(head_dim + ValueDim());
  const double tables =
      relative ? (2 * real(keys) - 1) * real(heads) * real(head_dim + ValueDim()) : 0;
  const auto element = static_cast<double>(DTypeSize(dtype));
  const double scores = real(batch) * real(Queries()) * real(keys);
  double matrices = scores * real(weights) * std::max(element, 4.0);
  if (implementation != AttentionImplementation::kFused) {
    // Weights, and flags in a byte each; with dropout what it leaves of the weights.
    matrices += scores * real(heads) * (element * (dropout > 0 ? 2 : 1) + 1);
  }
  const double list = kept_blocks == 0
                          ? 0
                          : real(batch) * real(BlocksOf(Queries())) *
                                (real(KeptBlocks(*this)) * sizeof(int32_t) + sizeof(int64_t));
  const double times = backward ? 2 : 1;
  return times * (query + key + tables) * element + matrices + list;
}

std::string AttentionShape::ToString() const {
  std::string text;
  for (const WordRule& rule : Rules()) {
    const std::string word = rule.write(*this);
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

AttentionShape ParseAttentionShape(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorKind::kUsage, "shape {}: {}", Quoted(text), why);
  };
  AttentionShape shape;
  std::set<const WordRule*> seen;
  constexpr const char* kBlank = " \t\r";
  for (size_t at = text.find_first_not_of(kBlank); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = std::min(text.find_first_not_of(kBlank, end), text.size());
    const SplitWord split = Split(word);
    if (split.rule == nullptr) {
      throw refuse(fmt::format("{} is none of its words, which are {}", Quoted(word), AllForms()));
    }
    if (!seen.insert(split.rule).second) {
      throw refuse(fmt::format("{} is given twice", split.rule->name));
    }
    if (!ReadValue(split, word, shape)) {
      throw refuse(fmt::format("{} must be {} ({}): {}", Quoted(word), split.rule->form,
                               split.rule->meaning, split.rule->values));
    }
  }
  const std::string contradiction = Contradiction(shape);
  if (!contradiction.empty()) throw refuse(contradiction);
  try {
    CheckAttentionProblem(MakeAttentionProblem(shape, TableValues::kUninitialized));
  } catch (const Error& error) {
    throw refuse(error.what());
  }
  return shape;
}

std::vector<AttentionShape> ParseAttentionShapes(std::string_view text, const std::string& name) {
  std::vector<AttentionShape> shapes;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (shapes.size() == kMostShapes) {
      throw Error(ErrorKind::kInput, "{}:{}: more than {} shapes: split the list", name, number,
                  kMostShapes);
    }
    try {
      shapes.push_back(ParseAttentionShape(line));
    } catch (const Error& error) {
      throw Error(ErrorKind::kInput, "{}:{}: {}", name, number, error.what());
    }
  }
  if (shapes.empty()) {
    throw Error(ErrorKind::kInput, "{}: holds no shape: write one a line, such as b1 h8 n512 d64",
                name);
  }
  return shapes;
}

std::vector<AttentionShapeWord> AttentionShapeWords() {
  std::vector<AttentionShapeWord> words;
  for (const WordRule& rule : Rules()) words.push_back({rule.form, rule.meaning});
  return words;
}

AttentionProblem MakeAttentionProblem(const AttentionShape& shape, TableValues tables) {
  AttentionProblem problem;
  problem.query_offsets = {0};
  problem.key_offsets = {0};
  for (int64_t s = 0; s < shape.batch; ++s) {
    problem.query_offsets.push_back(problem.query_offsets.back() + shape.QueriesOf(s));
    problem.key_offsets.push_back(problem.key_offsets.back() + shape.KeysOf(s));
    if (shape.dropout > 0) problem.dropout.sample_ids.push_back(s);
  }
  problem.heads = shape.heads;
  problem.kv_heads = shape.KvHeads();
  problem.head_dim = shape.head_dim;
  problem.value_dim = shape.ValueDim();
  problem.dtype = shape.dtype;
  problem.precision = shape.precision;
  problem.mask.causal = shape.causal;
  problem.mask.window = shape.window;
  if (shape.key_length > 0) {
    problem.mask.key_lengths.assign(static_cast<size_t>(shape.batch), shape.key_length);
  }
  if (shape.kept_blocks > 0) problem.mask.blocks = MakeBlockList(shape);
  problem.dropout.rate = shape.dropout;
  if (shape.relative) {
    const int64_t rows = 2 * shape.keys - 1;
    problem.relative.keys =
        Tensor::Uninitialized({shape.heads, rows, shape.head_dim}, shape.dtype, MemoryTag::kOther);
    problem.relative.values = Tensor::Uninitialized({shape.heads, rows, shape.ValueDim()},
                                                    shape.dtype, MemoryTag::kOther);
    if (tables == TableValues::kRandom) {
      FillTable(problem.relative.keys, shape.dtype, 5);
      FillTable(problem.relative.values, shape.dtype, 6);
    }
  }
  return problem;
}

double AttentionFlops(const AttentionShape& shape) {
  double kept = 0;
  if (shape.ragged) {
    for (int64_t s = 0; s < shape.batch; ++s) kept += KeptKeysOf(shape, s);
  } else {
    kept = static_cast<double>(shape.batch) * KeptKeysOf(shape, 0);
  }
  const int64_t width = shape.backward ? 3 * shape.head_dim + 2 * shape.ValueDim()
                                       : shape.head_dim + shape.ValueDim();
  return 2.0 * static_cast<double>(width * shape.heads) * kept;
}

}  // namespace headlight
