#include "memory/allocator/allocator_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/status.h"

namespace hpo::memory {
namespace {

constexpr int64_t kSmallestBlock = 512;
constexpr int64_t kLargestSmallRequest = int64_t{1} << 20;
constexpr int64_t kOwnSegmentFrom = int64_t{10} << 20;
constexpr int64_t kSegmentUnit = int64_t{2} << 20;
constexpr int64_t kOversizeSlack = int64_t{20} << 20;
int64_t SegmentSize(int64_t size) {
  if (size <= kLargestSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentFrom) return kLargeSegment;
  return RoundUp(size, kSegmentUnit);
}

// The next of `divisions` equal steps from one power of two to the next.
int64_t RoundToPowerDivision(int64_t size, int64_t divisions) {
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)));
  const int64_t step = floor / divisions;
  return step == 0 ? 2 * floor : RoundUp(size, step);
}

}  // namespace

std::string InvalidOption(const AllocatorOptions& options) {
  const auto expected = [](std::string what, const auto& got) {
    return std::move(what) + ", got " + std::to_string(got);
  };
  if (options.max_split_bytes <= kLargeSegment) {
    return expected("max_split_bytes: expected more than " + std::to_string(kLargeSegment),
                    options.max_split_bytes);
  }
  const double threshold = options.garbage_collection_threshold;
  if (!(threshold >= 0.0 && threshold < 1.0)) {
    return expected("garbage_collection_threshold: expected 0 <= threshold < 1", threshold);
  }
  const int64_t divisions = options.roundup_power2_divisions;
  if (divisions < 0 || (divisions > 0 && !std::has_single_bit(static_cast<uint64_t>(divisions)))) {
    return expected("roundup_power2_divisions: expected 0 or a power of two", divisions);
  }
  for (const Bytes bytes : {options.limit, options.card.total, options.card.left}) {
    if (bytes >= Bytes{}) continue;
    return expected("limit or card: expected no negative number", bytes.count);
  }
  return {};
}

AllocatorModel::AllocatorModel(const AllocatorOptions& options) : options_(options) {
  SetLimit(options.limit);
}

void AllocatorModel::SetLimit(Bytes limit) {
  options_.limit = limit < options_.card.total ? limit : Bytes{AllocatorOptions::kUnlimited};
}

int64_t AllocatorModel::RoundedSize(int64_t size) const {
  const int64_t divisions = options_.roundup_power2_divisions;
  if (divisions > 1 && size > kSmallestBlock * divisions) {
    return RoundToPowerDivision(size, divisions);
  }
  return std::max(kSmallestBlock, RoundUp(size, kSmallestBlock));
}

std::optional<AllocatorModel::Block> AllocatorModel::Allocate(Bytes size, uint16_t stream) {
  SegmentRequest request{.size = RoundedSize(size.count), .stream = stream};
  request.segment_size = SegmentSize(request.size);
  request.small = request.size <= kLargestSmallRequest;
  if (!request.small && CollectsGarbage()) ++num_large_requests_;

  Block block = BestFit(request);
  if (block == kNone) block = TakeSegment(request);
  if (block == kNone) return std::nullopt;

  if (ShouldSplit(blocks_[block], request)) {
    blocks_.InsertFree(blocks_.SplitOff(block, request.size, State::kFree), num_large_requests_);
  }
  blocks_[block].state = State::kAllocated;
  held_.stats.allocated.count += blocks_[block].size;
  held_.stats.allocated_peak = std::max(held_.stats.allocated_peak, held_.stats.allocated);
  return block;
}

void AllocatorModel::Free(Block block) {
  HPO_CHECK(blocks_[block].state == State::kAllocated);
  held_.stats.allocated.count -= blocks_[block].size;
  blocks_[block].state = State::kFree;
  blocks_.InsertFree(blocks_.MergeFree(block), num_large_requests_);
}

void AllocatorModel::EmptyCache() { ReleaseCached(); }

void AllocatorModel::EmptyCacheOf(uint16_t stream) {
  ReleaseCached(blocks_.PoolsOf(stream).large);
  ReleaseCached(blocks_.PoolsOf(stream).small);
}

AllocatorModel::Block AllocatorModel::BestFit(const SegmentRequest& request) {
  FreePool& pool = blocks_.PoolOf(request.small, request.stream);
  FreePool::Place found = pool.BestFit(request.size);
  if (!found) return kNone;
  if (options_.expandable_segments) found = ExpandableRanges::SmallestGrown(blocks_, pool, found);

  const int64_t size = pool.At(found).size;
  const bool oversize = request.size >= options_.max_split_bytes;
  if (!oversize && size >= options_.max_split_bytes) return kNone;
  if (oversize && size >= request.size + kOversizeSlack) return kNone;
  const Block block = pool.At(found).block;
  pool.Erase(found);
  return block;
}

AllocatorModel::Block AllocatorModel::TakeSegment(const SegmentRequest& request) {
  if (CollectsGarbage()) CollectGarbage();
  const auto take = [&] {
    return options_.expandable_segments ? ranges_.Grow(memory(), request, options_.limit)
                                        : TakeNativeSegment(request);
  };
  Block block = take();
  if (block == kNone && ReleaseOversize(request)) block = take();
  if (block == kNone && !blocks_.PoolsOf(request.stream).is_private) {
    ReleaseCached();
    ++held_.stats.num_retries;
    block = take();
  }
  if (block == kNone) ++held_.stats.num_ooms;
  return block;
}

AllocatorModel::Block AllocatorModel::TakeNativeSegment(const SegmentRequest& request) {
  if (!held_.Allows(options_.limit, request.segment_size)) return kNone;
  if (!held_.Allows(options_.card.left, request.segment_size)) return kNone;
  held_.Reserve(request.segment_size);
  const int64_t address = next_address_;
  next_address_ += request.segment_size;
  return blocks_.Add({.address = address,
                      .size = request.segment_size,
                      .stream = request.stream,
                      .small = request.small});
}

bool AllocatorModel::ShouldSplit(const SegmentBlock& block, const SegmentRequest& request) const {
  const int64_t rest = block.size - request.size;
  if (block.small || options_.expandable_segments) return rest >= kSmallestBlock;
  return request.size < options_.max_split_bytes && rest > kLargestSmallRequest;
}

bool AllocatorModel::CollectsGarbage() const {
  return options_.garbage_collection_threshold > 0.0 &&
         options_.limit.count != AllocatorOptions::kUnlimited;
}

int64_t AllocatorModel::AgeOf(Block block) const {
  return num_large_requests_ - blocks_[block].freed_at;
}

// While more is held than the threshold: of the large segments that are wholly free, all that are
// no younger than their mean.
void AllocatorModel::CollectGarbage() {
  if (options_.expandable_segments) return;
  const auto threshold = static_cast<int64_t>(options_.garbage_collection_threshold *
                                              static_cast<double>(options_.limit.count));
  if (held_.stats.reserved.count <= threshold) return;
  std::vector<Block> whole;
  for (const SegmentBlocks::Pools& pools : blocks_.pools()) {
    if (pools.is_private) continue;
    for (const FreePool::Entry& entry : pools.large.Sorted()) {
      if (blocks_.IsWholeSegment(entry.block)) whole.push_back(entry.block);
    }
  }
  while (held_.stats.reserved.count > threshold && !whole.empty()) {
    int64_t ages = 0;
    for (const Block block : whole) ages += AgeOf(block);
    const auto num_whole = static_cast<int64_t>(whole.size());
    std::erase_if(whole, [&](Block block) {
      if (AgeOf(block) * num_whole < ages) return false;
      ReturnSegment(block);
      return true;
    });
  }
}

// With a split size, in the request's own pool: one cached block large enough, or several oversize
// ones from the largest down.
bool AllocatorModel::ReleaseOversize(const SegmentRequest& request) {
  if (options_.max_split_bytes == AllocatorOptions::kUnlimited || options_.expandable_segments) {
    return false;
  }
  const int64_t wanted = std::max(request.size, options_.max_split_bytes);
  const FreePool& pool = blocks_.PoolOf(request.small, request.stream);
  if (const FreePool::Place found = pool.BestFit(wanted)) {
    ReturnSegment(pool.At(found).block);
    return true;
  }
  int64_t released = 0;
  std::vector<FreePool::Entry> smaller = pool.Sorted();
  for (; !smaller.empty() && released < wanted; smaller.pop_back()) {
    if (smaller.back().size < options_.max_split_bytes) break;
    released += smaller.back().size;
    ReturnSegment(smaller.back().block);
  }
  return released >= wanted;
}

void AllocatorModel::ReleaseCached() {
  for (const SegmentBlocks::Pools& pools : blocks_.pools()) {
    if (!pools.is_private) ReleaseCached(pools.large);
  }
  for (const SegmentBlocks::Pools& pools : blocks_.pools()) {
    if (!pools.is_private) ReleaseCached(pools.small);
  }
}

void AllocatorModel::ReleaseCached(const FreePool& pool) {
  for (const FreePool::Entry& entry : pool.Sorted()) {
    if (options_.expandable_segments) {
      ranges_.Unmap(memory(), entry.block);
    } else if (blocks_.IsWholeSegment(entry.block)) {
      ReturnSegment(entry.block);
    }
  }
}

void AllocatorModel::ReturnSegment(Block block) {
  blocks_.EraseFree(block);
  held_.Return(blocks_[block].size);
  blocks_.Remove(block);
}

}  // namespace hpo::memory
