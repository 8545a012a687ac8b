// A model of PyTorch's CUDA caching allocator: which segments it takes from the device for a
// sequence of requests, and when it gives up. No memory is touched.
//
// Both back ends: native (512 B rounding; a small and a large pool for each stream; 2 MiB, 20 MiB
// or exact segments; best fit; splitting; freeing cached segments and trying again before an
// out-of-memory error) and expandable segments (address ranges that grow, for each pool and stream,
// by pages of 2 or 20 MiB). The options are those of PYTORCH_ALLOC_CONF.
// Left out: memory shared between streams (recordStream), CUDA graphs' private pools, other options
// while blocks are held. New segments are taken to lie behind all earlier ones, which decides
// between free blocks of one size.
//
// Deterministic. Not thread-safe. A request costs well under a microsecond.
// Source: the behaviour of c10/cuda/CUDACachingAllocator.cpp, torch 2.11.
// tests/emulator/compare_allocators.cc holds it against torch's own.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/bytes.h"
#include "memory/allocator/block_list.h"
#include "memory/allocator/free_pool.h"

namespace hpo::memory {

struct AllocatorOptions {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

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
  // The card itself, which ends whether a fraction is set or not.
  struct Card {
    Bytes total{kUnlimited};  // an expandable segment's addresses reach for 9/8 of it
    Bytes left{kUnlimited};   // without what contexts and other processes hold
    bool operator==(const Card&) const = default;
  };
  Card card;
  bool operator==(const AllocatorOptions&) const = default;
};

//   InvalidArgument  names the option: a split size that is not above 20 MiB, a threshold outside
//                    [0, 1), divisions that are no power of two, a negative limit or card
absl::Status ValidateAllocatorOptions(const AllocatorOptions& options);

struct AllocatorStats {
  Bytes allocated;       // blocks handed out, their rounding and unsplit rest included
  Bytes allocated_peak;  // torch's allocated_bytes.peak
  Bytes reserved;        // segments (expandable: pages) held from the device
  Bytes reserved_peak;
  // Times that cached segments were freed for a request (num_alloc_retries).
  int64_t num_retries = 0;
  int64_t num_ooms = 0;
  Bytes lacking;  // by how much the limit, or the card, was too small the last time it was
  bool operator==(const AllocatorStats&) const = default;
};

class AllocatorModel {
 public:
  using Block = BlockList::Index;

  // `options` are valid.
  explicit AllocatorModel(const AllocatorOptions& options = {});

  // Memory for `size` >= 0 bytes on `stream`; nullopt when the limit or the card does not allow it
  // even after everything cached was freed. A request that failed changes nothing but the cache.
  std::optional<Block> Allocate(Bytes size, uint8_t stream = 0);

  // `block` came from Allocate and was not freed.
  void Free(Block block);

  // From now on; less than what is held already allows no more segments.
  void SetLimit(Bytes limit);

  // Gives every segment that is wholly free back to the device (emptyCache).
  void EmptyCache();

  const AllocatorStats& stats() const { return stats_; }

  // Segments in address order; for each its size and its blocks as (size, is allocated).
  // Expandable: unmapped address space is left out.
  struct Segment {
    int64_t address = 0;
    Bytes size;
    std::vector<std::pair<Bytes, bool>> blocks;
  };
  std::vector<Segment> Snapshot() const;

 private:
  static constexpr Block kNone = BlockList::kNone;
  using State = SegmentBlock::State;

  struct Pools {
    FreePool small;
    FreePool large;
  };

  struct Request {
    int64_t size = 0;          // rounded
    int64_t segment_size = 0;  // what a new segment would have
    uint8_t stream = 0;
    bool small = false;
  };

  int64_t RoundedSize(int64_t size) const;
  FreePool& PoolOf(bool small, uint8_t stream);
  Block BestFit(const Request& request);
  FreePool::Place SmallestExpandable(const FreePool& pool, FreePool::Place found) const;
  Block TakeSegment(const Request& request);
  Block TakeNativeSegment(const Request& request);
  Block GrowRange(const Request& request);
  Block FindRange(const Request& request);
  Block NewRange(const Request& request);
  // Maps at least `size` bytes at the start of an unmapped block and merges them with free
  // neighbours; kNone when the card has no more.
  Block MapPages(Block unmapped, int64_t size);
  void UnmapPages(Block block);
  bool ShouldSplit(const SegmentBlock& block, const Request& request) const;
  Block MergeFree(Block block);
  bool IsWholeSegment(Block block) const;
  bool CollectsGarbage() const;
  int64_t AgeOf(Block block) const;
  void CollectGarbage();
  bool ReleaseOversize(const Request& request);
  void ReleaseCached();
  void ReleaseCached(const FreePool& pool);
  void ReturnSegment(Block block);

  // Whether `bound` has place for `more` beyond what is held.
  bool Allows(Bytes bound, int64_t more);
  void Reserve(int64_t bytes);
  void InsertFree(Block block);
  void EraseFree(Block block);

  AllocatorOptions options_;
  AllocatorStats stats_;
  BlockList blocks_;
  std::vector<Pools> pools_;           // by stream
  std::map<int64_t, Block> unmapped_;  // expandable: address space without pages, by address
  int64_t next_address_ = 0;
  int64_t num_large_requests_ = 0;  // while garbage is collected
};

}  // namespace hpo::memory
