// A model of PyTorch's CUDA caching allocator: which segments it takes from the device for a
// sequence of requests, and when it gives up. No memory is touched.
//
// Both back ends: native (512 B rounding; a small and a large pool for each stream; 2 MiB, 20 MiB
// or exact segments; best fit; splitting; freeing cached segments and trying again before an
// out-of-memory error) and expandable segments (address ranges that grow, for each pool and stream,
// by pages of 2 or 20 MiB). The options are those of PYTORCH_ALLOC_CONF.
// Left out: memory shared between streams (recordStream; a caller frees such a block once all of
// them have used it), other options while blocks are held. New segments are taken to lie behind all
// earlier ones, which decides between free blocks of one size.
//
// Deterministic. Not thread-safe. A request costs well under a microsecond.
// Source: the behaviour of c10/cuda/CUDACachingAllocator.cpp, torch 2.11.
// tests/emulator/compare_allocators.cc holds it against torch's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "memory/allocator/expandable_ranges.h"
#include "memory/allocator/held_memory.h"
#include "memory/allocator/segment_blocks.h"

namespace hpo::memory {

struct AllocatorOptions {
  static constexpr int64_t kUnlimited = CardMemory::kUnlimited;

  bool expandable_segments = false;
  // Blocks from this size on are neither split nor given to smaller requests.
  int64_t max_split_bytes = kUnlimited;
  // Share of `limit` above which cached segments are given back before more is taken; 0: never.
  // Without a limit, and of expandable segments, none is.
  double garbage_collection_threshold = 0.0;
  // Requests are rounded up to one of this many steps between powers of two; 0 or 1: to 512 B only.
  int64_t roundup_power2_divisions = 0;
  // What may be held from the device: that share of the card that setMemoryFraction allows. An
  // expandable segment may exceed it by less than a page. All of the card counts as no limit.
  Bytes limit{kUnlimited};
  using Card = CardMemory;
  Card card;  // which ends whether a fraction is set or not
  bool operator==(const AllocatorOptions&) const = default;
};

// One line that names the option, what was expected and what came; empty where all are valid: a
// split size above 20 MiB, a threshold in [0, 1), divisions that are a power of two, no negative
// limit or card.
std::string InvalidOption(const AllocatorOptions& options);

class AllocatorModel {
 public:
  using Block = BlockList::Index;

  // `options` are valid.
  explicit AllocatorModel(const AllocatorOptions& options = {});

  // Memory for `size` >= 0 bytes on `stream`; nullopt when the limit or the card does not allow it
  // even after everything cached was freed. A request that failed changes nothing but the cache.
  std::optional<Block> Allocate(Bytes size, uint16_t stream = 0);

  // `block` came from Allocate and was not freed.
  void Free(Block block);

  // From now on; less than what is held already allows no more segments.
  void SetLimit(Bytes limit);

  // Gives every segment that is wholly free back to the device (emptyCache), but those of private
  // pools.
  void EmptyCache();

  // `stream` stands for a private pool, as a CUDA graph has one on the stream that it is captured
  // on: a request for it frees no cached segments of others before it fails, and no other request
  // frees its segments. Before its first request.
  void MakePrivate(uint16_t stream) { blocks_.PoolsOf(stream).is_private = true; }

  // Gives the segments of one stream, or private pool, that are wholly free back to the device.
  void EmptyCacheOf(uint16_t stream);

  const AllocatorStats& stats() const { return held_.stats; }

  using Segment = SegmentBlocks::Segment;
  std::vector<Segment> Snapshot() const { return blocks_.Snapshot(); }

 private:
  static constexpr Block kNone = BlockList::kNone;
  using State = SegmentBlock::State;

  ExpandableRanges::Memory memory() { return {blocks_, held_, options_.card}; }
  int64_t RoundedSize(int64_t size) const;
  Block BestFit(const SegmentRequest& request);
  Block TakeSegment(const SegmentRequest& request);
  Block TakeNativeSegment(const SegmentRequest& request);
  bool ShouldSplit(const SegmentBlock& block, const SegmentRequest& request) const;
  bool CollectsGarbage() const;
  int64_t AgeOf(Block block) const;
  void CollectGarbage();
  bool ReleaseOversize(const SegmentRequest& request);
  void ReleaseCached();
  void ReleaseCached(const FreePool& pool);
  void ReturnSegment(Block block);

  AllocatorOptions options_;
  HeldMemory held_;
  SegmentBlocks blocks_;
  ExpandableRanges ranges_;
  int64_t next_address_ = 0;
  int64_t num_large_requests_ = 0;  // while garbage is collected
};

}  // namespace hpo::memory
