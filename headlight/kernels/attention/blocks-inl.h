// Walks over what a block list keeps (attention.h: Mask::BlockList).

#if defined(HEADLIGHT_KERNELS_ATTENTION_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADLIGHT_KERNELS_ATTENTION_BLOCKS_INL_H_
#undef HEADLIGHT_KERNELS_ATTENTION_BLOCKS_INL_H_
#else
#define HEADLIGHT_KERNELS_ATTENTION_BLOCKS_INL_H_
#endif

#include "headlight/kernels/attention/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headlight {
namespace attention {
namespace HWY_NAMESPACE {

// Calls function(begin, end) for queries [first, last) cut at query blocks, and each of those into
// parts of at most `rows`.
template <typename Function>
void ForQueryParts(const BlockRows& blocks, int64_t first, int64_t last, int64_t rows,
                   const Function& function) {
  for (int64_t begin = first; begin < last;) {
    const int64_t block_end = (begin / blocks.query_block + 1) * blocks.query_block;
    const int64_t end = std::min({begin + rows, block_end, last});
    function(begin, end);
    begin = end;
  }
}

// Calls function(begin, count) for the runs of adjacent key blocks that the block of query `row`
// keeps, cut into parts of at most kKeyBlock keys, below `limit`.
template <typename Function>
void ForKeyParts(const BlockRows& blocks, int64_t row, int64_t limit, const Function& function) {
  const int64_t* offsets = blocks.offsets + row / blocks.query_block;
  const int32_t *at = blocks.key_blocks + offsets[0], *last = blocks.key_blocks + offsets[1];
  while (at < last) {
    const int64_t first_block = *at;
    int64_t end_block = first_block + 1;
    for (++at; at < last && *at == end_block; ++at) ++end_block;
    const int64_t end = std::min(end_block * blocks.key_block, limit);
    for (int64_t key = first_block * blocks.key_block; key < end; key += kKeyBlock) {
      function(key, std::min(kKeyBlock, end - key));
    }
  }
}

// `head` for queries before `queries` and keys before `keys`: vectors reach past the end of a part.
inline HeadProblem CutHead(const HeadProblem& head, int64_t queries, int64_t keys) {
  HeadProblem cut = head;
  cut.queries = queries;
  cut.intervals.limit = std::min(head.intervals.limit, keys);
  return cut;
}

}  // namespace HWY_NAMESPACE
}  // namespace attention
}  // namespace headlight
HWY_AFTER_NAMESPACE();

#endif  // HEADLIGHT_KERNELS_ATTENTION_BLOCKS_INL_H_
