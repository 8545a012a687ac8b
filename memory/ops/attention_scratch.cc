#include "memory/ops/attention_scratch.h"

#include <algorithm>

#include "memory/allocator/divide_up.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

// Of each tile of the queries' gradient: a lock and a count, padded.
constexpr int64_t kTileHeader = 4;  // floats
// Heads of rows from which on a short row's keys are not split.
constexpr int64_t kEnoughBlocks = 256;
constexpr int64_t kMostSplits = 200;

// How many queries and keys a block of threads works on at once, and whether gradients of keys and
// values are summed in the card's memory, for want of registers.
struct Tile {
  int64_t queries = 64;
  int64_t keys = 64;
  bool sums_in_memory = false;
};

// By what fits in a multiprocessor's shared memory: 7.5, 8.6, 8.9 and 12.0 have little of it.
Tile TileOf(const EfficientAttention& attention) {
  if (attention.head_size <= 64) return {};
  const int64_t capability = attention.capability;
  const bool is_turing = capability < 80;
  const bool is_small = is_turing || capability == 86 || capability == 89 || capability >= 120;
  if (attention.element_size == kFloatBytes) return {.queries = is_small ? 64 : 128};
  if (attention.head_size > 128) return {.queries = 128, .sums_in_memory = true};
  if (!is_small) return {.queries = 128, .keys = 128};
  if (is_turing) return {.queries = 128};
  const bool has_kernel = capability < 120 && attention.head_size <= 96 && !attention.dropout;
  return has_kernel ? Tile{.queries = 128} : Tile{.sums_in_memory = true};
}

}  // namespace

int64_t EfficientBackwardBytes(const EfficientAttention& attention) {
  const Tile tile = TileOf(attention);
  int64_t floats = DivideUp(attention.tokens, tile.queries) *
                   DivideUp(attention.head_size, tile.keys) *
                   (kTileHeader + tile.queries * tile.keys);
  const int64_t blocks = attention.batch * attention.heads;
  if (tile.sums_in_memory) {
    int64_t splits = DivideUp(attention.tokens, tile.keys);
    if (blocks >= kEnoughBlocks && attention.tokens <= 2 * tile.keys) splits = 1;
    splits = std::max<int64_t>(1, std::min(splits, kMostSplits / blocks));
    floats += 2 * splits * tile.keys * DivideUp(attention.head_size, tile.queries) * tile.queries;
  }
  return kFloatBytes * blocks * floats;
}

}  // namespace hpo::memory
