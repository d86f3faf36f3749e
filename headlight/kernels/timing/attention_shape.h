// Shapes of attention as text: what `headlight bench`, its lists (bench/shapes) and the comparisons
// with other libraries (bench/peers/attention) time.
//
// A shape is one line of words, in any order:
//   b32 h8 n128 d64               32 sequences of 128 tokens, 8 heads of 64
//   b1 h8 n1024 d64 causal        a query looks at no later key
//   b1 h8 n4096 d64 window=128,128
//   b1 h8 kv2 q1 n4096 d64        one query, 4096 keys, 8 heads that read 2 key/value heads
//   b32 h8 n512 d64 backward      dq, dk and dv instead of the forward pass
// AttentionShapeWords() lists them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/kernels/attention/attention_implementation.h"

namespace headlight {

struct AttentionShape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kv_heads = 0;   // 0: as heads
  int64_t queries = 0;    // of a sequence; 0: as keys
  int64_t keys = 0;       // of a sequence
  int64_t head_dim = 0;   // of a query and a key
  int64_t value_dim = 0;  // 0: as head_dim
  DType dtype = DType::kF32;
  Precision precision = Precision::kF32;
  Mask::Causal causal = Mask::Causal::kNone;
  std::optional<Mask::Window> window;
  int64_t key_length = 0;  // masks the keys from here on; 0: none
  // Lengths evenly from an eighth of `keys` up, instead of `keys` each.
  bool ragged = false;
  // Of blocks of 64 queries x 64 keys a list keeps so many of a hundred in every row of blocks,
  // evenly spread; 0: no list.
  int64_t kept_blocks = 0;
  bool bhnd = false;      // tensors lie [batch, heads, len, dim], not [batch, len, heads, dim]
  bool relative = false;  // tables over relative keys and values, one per head
  double dropout = 0;     // on weights
  bool backward = false;
  bool statistics = false;  // of all heads, in the forward pass
  int64_t weights = 0;      // of so many heads of every sequence, in the forward pass
  AttentionImplementation implementation = AttentionImplementation::kFused;

  // With what a 0 above stands for.
  int64_t KvHeads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t Queries() const { return queries > 0 ? queries : keys; }
  int64_t ValueDim() const { return value_dim > 0 ? value_dim : head_dim; }
  // Queries and keys of sequence `sequence`.
  int64_t QueriesOf(int64_t sequence) const;
  int64_t KeysOf(int64_t sequence) const;
  // Bytes of inputs and outputs, of a list of blocks, and of n x n matrices that are kept.
  double Bytes() const;

  // The words, in the order of AttentionShapeWords(); parsing them gives the shape again.
  std::string ToString() const;
  bool operator==(const AttentionShape& other) const { return ToString() == other.ToString(); }
};

// Throws kUsage, naming the shape, the word and the rule, for what is no shape, for what
// CheckAttentionProblem refuses, and for shapes of more than 4 GiB.
AttentionShape ParseAttentionShape(std::string_view text);

// A list: one shape a line, '#' begins a comment. `name` stands for the file in messages. Throws
// kInput ("name:line: ...") for a line that is no shape, and for a list that holds none or more
// than 10,000.
std::vector<AttentionShape> ParseAttentionShapes(std::string_view text, const std::string& name);

// Every word with what it means: {"b<N>", "sequences (1)"}.
struct AttentionShapeWord {
  std::string word;
  std::string meaning;
};
std::vector<AttentionShapeWord> AttentionShapeWords();

// The problem of a shape: everything but the tensors of inputs. Tables of relative positions hold
// random numbers, or are only shaped.
enum class TableValues { kRandom, kUninitialized };
AttentionProblem MakeAttentionProblem(const AttentionShape& shape,
                                      TableValues tables = TableValues::kRandom);

// Floating-point operations of one pass: 2 (head_dim + value_dim) for each query, head and key that
// the mask keeps (two products), 2 (3 head_dim + 2 value_dim) backward (five). What is masked,
// recomputed or is no product does not count.
double AttentionFlops(const AttentionShape& shape);

}  // namespace headlight
