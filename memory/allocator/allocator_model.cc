#include "memory/allocator/allocator_model.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::memory {
namespace {

constexpr int64_t kSmallestBlock = 512;
constexpr int64_t kLargestSmallRequest = int64_t{1} << 20;
constexpr int64_t kSmallSegment = int64_t{2} << 20;
constexpr int64_t kLargeSegment = int64_t{20} << 20;
constexpr int64_t kOwnSegmentFrom = int64_t{10} << 20;
constexpr int64_t kSegmentUnit = int64_t{2} << 20;
constexpr int64_t kOversizeSlack = int64_t{20} << 20;
// Whole pages; more than any device has, and few enough that addresses cannot overflow.
constexpr int64_t kLargestRange = kLargeSegment << 26;

int64_t RoundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

int64_t SegmentSize(int64_t size) {
  if (size <= kLargestSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentFrom) return kLargeSegment;
  return RoundUp(size, kSegmentUnit);
}

int64_t PageSize(bool small) { return small ? kSmallSegment : kLargeSegment; }

// Addresses that an expandable segment reserves for what it may become.
int64_t RangeSize(int64_t card_total, bool small) {
  if (card_total >= kLargestRange / 2) return kLargestRange;
  return RoundUp(card_total + card_total / 8, PageSize(small));
}

// The next of `divisions` equal steps from one power of two to the next.
int64_t RoundToPowerDivision(int64_t size, int64_t divisions) {
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)));
  const int64_t step = floor / divisions;
  return step == 0 ? 2 * floor : RoundUp(size, step);
}

}  // namespace

absl::Status ValidateAllocatorOptions(const AllocatorOptions& options) {
  if (options.max_split_bytes <= kLargeSegment) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_split_bytes: expected more than ", kLargeSegment, ", got ", options.max_split_bytes));
  }
  if (!(options.garbage_collection_threshold >= 0.0 &&
        options.garbage_collection_threshold < 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("garbage_collection_threshold: expected 0 <= threshold < 1, got ",
                     options.garbage_collection_threshold));
  }
  const int64_t divisions = options.roundup_power2_divisions;
  if (divisions < 0 || (divisions > 0 && !std::has_single_bit(static_cast<uint64_t>(divisions)))) {
    return absl::InvalidArgumentError(
        absl::StrCat("roundup_power2_divisions: expected 0 or a power of two, got ", divisions));
  }
  if (options.limit < Bytes{}) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit: expected no negative number, got ", options.limit.count));
  }
  if (options.card.total < Bytes{} || options.card.left < Bytes{}) {
    return absl::InvalidArgumentError(absl::StrCat("card: expected no negative numbers, got ",
                                                   options.card.total.count, " and ",
                                                   options.card.left.count));
  }
  return absl::OkStatus();
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

std::optional<AllocatorModel::Block> AllocatorModel::Allocate(Bytes size, uint8_t stream) {
  Request request{.size = RoundedSize(size.count), .stream = stream};
  request.segment_size = SegmentSize(request.size);
  request.small = request.size <= kLargestSmallRequest;
  if (!request.small && CollectsGarbage()) ++num_large_requests_;

  Block block = BestFit(request);
  if (block == kNone) block = TakeSegment(request);
  if (block == kNone) return std::nullopt;

  if (ShouldSplit(blocks_[block], request)) {
    InsertFree(blocks_.SplitOff(block, request.size, State::kFree));
  }
  blocks_[block].state = State::kAllocated;
  stats_.allocated.count += blocks_[block].size;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  return block;
}

void AllocatorModel::Free(Block block) {
  HPO_CHECK(blocks_[block].state == State::kAllocated);
  stats_.allocated.count -= blocks_[block].size;
  blocks_[block].state = State::kFree;
  InsertFree(MergeFree(block));
}

void AllocatorModel::EmptyCache() { ReleaseCached(); }

// ---- Finding a block ---------------------------------------------------------------------------

FreePool& AllocatorModel::PoolOf(bool small, uint8_t stream) {
  if (pools_.size() <= stream) pools_.resize(size_t{stream} + 1);
  return small ? pools_[stream].small : pools_[stream].large;
}

AllocatorModel::Block AllocatorModel::BestFit(const Request& request) {
  FreePool& pool = PoolOf(request.small, request.stream);
  FreePool::Place found = pool.BestFit(request.size);
  if (!found) return kNone;
  if (options_.expandable_segments) found = SmallestExpandable(pool, found);

  const int64_t size = pool.At(found).size;
  const bool oversize = request.size >= options_.max_split_bytes;
  if (!oversize && size >= options_.max_split_bytes) return kNone;
  if (oversize && size >= request.size + kOversizeSlack) return kNone;
  const Block block = pool.At(found).block;
  pool.Erase(found);
  return block;
}

// A block that can still grow counts as large as it can become, so that it is used last.
FreePool::Place AllocatorModel::SmallestExpandable(const FreePool& pool,
                                                   FreePool::Place found) const {
  const auto grown = [&](FreePool::Place place) {
    const Block next = blocks_[pool.At(place).block].next;
    const bool grows = next != kNone && blocks_[next].state == State::kUnmapped;
    return pool.At(place).size + (grows ? blocks_[next].size : 0);
  };
  for (FreePool::Place next = pool.After(found); next; next = pool.After(next)) {
    if (grown(next) >= grown(found)) break;
    found = next;
  }
  return found;
}

AllocatorModel::Block AllocatorModel::TakeSegment(const Request& request) {
  if (CollectsGarbage()) CollectGarbage();
  const auto take = [&] {
    return options_.expandable_segments ? GrowRange(request) : TakeNativeSegment(request);
  };
  Block block = take();
  if (block == kNone && ReleaseOversize(request)) block = take();
  if (block == kNone) {
    ReleaseCached();
    ++stats_.num_retries;
    block = take();
  }
  if (block == kNone) ++stats_.num_ooms;
  return block;
}

AllocatorModel::Block AllocatorModel::TakeNativeSegment(const Request& request) {
  if (!Allows(options_.limit, request.segment_size)) return kNone;
  if (!Allows(options_.card.left, request.segment_size)) return kNone;
  Reserve(request.segment_size);
  const int64_t address = next_address_;
  next_address_ += request.segment_size;
  return blocks_.Add({.address = address,
                      .size = request.segment_size,
                      .stream = request.stream,
                      .small = request.small});
}

bool AllocatorModel::ShouldSplit(const SegmentBlock& block, const Request& request) const {
  const int64_t rest = block.size - request.size;
  if (block.small || options_.expandable_segments) return rest >= kSmallestBlock;
  return request.size < options_.max_split_bytes && rest > kLargestSmallRequest;
}

// ---- Expandable segments -----------------------------------------------------------------------

// A free block with unmapped space behind it, or unmapped space, of the request's size or more.
AllocatorModel::Block AllocatorModel::FindRange(const Request& request) {
  for (const auto& [address, block] : unmapped_) {
    if (blocks_[block].stream != request.stream || blocks_[block].small != request.small) continue;
    const Block before = blocks_[block].previous;
    const bool starts_before = before != kNone && blocks_[before].state == State::kFree;
    int64_t room = 0;
    const Block start = starts_before ? before : block;
    for (Block b = start;
         b != kNone && blocks_[b].state != State::kAllocated && room < request.size;
         b = blocks_[b].next) {
      room += blocks_[b].size;
    }
    if (room >= request.size) return start;
  }
  return NewRange(request);
}

AllocatorModel::Block AllocatorModel::NewRange(const Request& request) {
  const int64_t size = RangeSize(options_.card.total.count, request.small);
  const Block range = blocks_.Add({.address = next_address_,
                                   .size = size,
                                   .state = State::kUnmapped,
                                   .stream = request.stream,
                                   .small = request.small});
  unmapped_.emplace(next_address_, range);
  next_address_ += RoundUp(size, kLargeSegment);  // so that pages begin at their multiples
  return range;
}

// The limit is asked once, for a segment as the native allocator would take it; pages then come
// one piece after the other, and those that came stay where a later one does not.
AllocatorModel::Block AllocatorModel::GrowRange(const Request& request) {
  if (!Allows(options_.limit, request.segment_size)) return kNone;
  Block block = FindRange(request);
  if (blocks_[block].state == State::kUnmapped) {
    block = MapPages(block, std::min(blocks_[block].size, request.size));
  }
  while (block != kNone && blocks_[block].size < request.size) {
    const Block next = blocks_[block].next;
    if (next == kNone) return kNone;
    block = MapPages(next, std::min(request.size - blocks_[block].size, blocks_[next].size));
  }
  if (block != kNone) EraseFree(block);
  return block;
}

AllocatorModel::Block AllocatorModel::MapPages(Block unmapped, int64_t size) {
  const int64_t mapped =
      std::min(RoundUp(size, PageSize(blocks_[unmapped].small)), blocks_[unmapped].size);
  if (!Allows(options_.card.left, mapped)) return kNone;
  Reserve(mapped);
  unmapped_.erase(blocks_[unmapped].address);
  if (mapped < blocks_[unmapped].size) {
    const Block rest = blocks_.SplitOff(unmapped, mapped, State::kUnmapped);
    unmapped_.emplace(blocks_[rest].address, rest);
  }
  blocks_[unmapped].state = State::kFree;
  const Block merged = MergeFree(unmapped);
  InsertFree(merged);
  return merged;
}

// Gives back the whole pages inside a free block, and a range of which nothing is left.
void AllocatorModel::UnmapPages(Block block) {
  const int64_t page = PageSize(blocks_[block].small);
  const int64_t start = RoundUp(blocks_[block].address, page);
  const int64_t end = (blocks_[block].address + blocks_[block].size) / page * page;
  if (start >= end) return;
  EraseFree(block);
  if (start > blocks_[block].address) {
    const Block pages = blocks_.SplitOff(block, start - blocks_[block].address, State::kFree);
    InsertFree(block);
    block = pages;
  }
  if (end < blocks_[block].address + blocks_[block].size) {
    InsertFree(blocks_.SplitOff(block, end - blocks_[block].address, State::kFree));
  }
  blocks_[block].state = State::kUnmapped;
  stats_.reserved.count -= blocks_[block].size;
  const Block next = blocks_[block].next;
  if (next != kNone && blocks_[next].state == State::kUnmapped) {
    unmapped_.erase(blocks_[next].address);
    blocks_.JoinNext(block);
  }
  const Block before = blocks_[block].previous;
  if (before != kNone && blocks_[before].state == State::kUnmapped) {
    blocks_.JoinNext(before);
    block = before;
  }
  if (IsWholeSegment(block)) {
    unmapped_.erase(blocks_[block].address);
    blocks_.Remove(block);
  } else {
    unmapped_.emplace(blocks_[block].address, block);
  }
}

// ---- Giving memory back to the device ----------------------------------------------------------

bool AllocatorModel::IsWholeSegment(Block block) const {
  return blocks_[block].previous == kNone && blocks_[block].next == kNone;
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
  if (stats_.reserved.count <= threshold) return;
  std::vector<Block> whole;
  for (const Pools& pools : pools_) {
    for (const FreePool::Entry& entry : pools.large.Sorted()) {
      if (IsWholeSegment(entry.block)) whole.push_back(entry.block);
    }
  }
  while (stats_.reserved.count > threshold && !whole.empty()) {
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
bool AllocatorModel::ReleaseOversize(const Request& request) {
  if (options_.max_split_bytes == AllocatorOptions::kUnlimited || options_.expandable_segments) {
    return false;
  }
  const int64_t wanted = std::max(request.size, options_.max_split_bytes);
  const FreePool& pool = PoolOf(request.small, request.stream);
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
  for (const Pools& pools : pools_) ReleaseCached(pools.large);
  for (const Pools& pools : pools_) ReleaseCached(pools.small);
}

void AllocatorModel::ReleaseCached(const FreePool& pool) {
  for (const FreePool::Entry& entry : pool.Sorted()) {
    if (options_.expandable_segments) {
      UnmapPages(entry.block);
    } else if (IsWholeSegment(entry.block)) {
      ReturnSegment(entry.block);
    }
  }
}

void AllocatorModel::ReturnSegment(Block block) {
  EraseFree(block);
  stats_.reserved.count -= blocks_[block].size;
  blocks_.Remove(block);
}

// ---- Blocks ------------------------------------------------------------------------------------

bool AllocatorModel::Allows(Bytes bound, int64_t more) {
  const int64_t left = bound.count - stats_.reserved.count;
  if (more > left) stats_.lacking.count = more - left;
  return more <= left;
}

void AllocatorModel::Reserve(int64_t bytes) {
  stats_.reserved.count += bytes;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
}

// Joins a free block that is in no pool with its free neighbours; the result is in no pool.
AllocatorModel::Block AllocatorModel::MergeFree(Block block) {
  const Block next = blocks_[block].next;
  if (next != kNone && blocks_[next].state == State::kFree) {
    EraseFree(next);
    blocks_.JoinNext(block);
  }
  const Block before = blocks_[block].previous;
  if (before == kNone || blocks_[before].state != State::kFree) return block;
  EraseFree(before);
  blocks_.JoinNext(before);
  return before;
}

void AllocatorModel::InsertFree(Block block) {
  SegmentBlock& data = blocks_[block];
  data.freed_at = num_large_requests_;
  PoolOf(data.small, data.stream)
      .Insert({.size = data.size, .address = data.address, .block = block});
}

void AllocatorModel::EraseFree(Block block) {
  const SegmentBlock& data = blocks_[block];
  PoolOf(data.small, data.stream).Erase(data.size, data.address);
}

std::vector<AllocatorModel::Segment> AllocatorModel::Snapshot() const {
  std::vector<Segment> segments;
  for (Block first = 0; first < blocks_.end(); ++first) {
    if (blocks_[first].size == 0 || blocks_[first].previous != kNone) continue;
    Segment segment{.address = blocks_[first].address};
    for (Block block = first; block != kNone; block = blocks_[block].next) {
      if (blocks_[block].state == State::kUnmapped) continue;
      segment.size.count += blocks_[block].size;
      segment.blocks.emplace_back(Bytes{blocks_[block].size},
                                  blocks_[block].state == State::kAllocated);
    }
    if (segment.size > Bytes{}) segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  return segments;
}

}  // namespace hpo::memory
