#include "common/memory/allocator_model.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr int64_t kSmallestBlock = 512;
constexpr int64_t kLargestSmallRequest = int64_t{1} << 20;
constexpr int64_t kSmallSegment = int64_t{2} << 20;
constexpr int64_t kLargeSegment = int64_t{20} << 20;
constexpr int64_t kOwnSegmentFrom = int64_t{10} << 20;
constexpr int64_t kSegmentUnit = int64_t{2} << 20;
constexpr int64_t kOversizeSlack = int64_t{20} << 20;
// Whole pages; more than any device has, and few enough that addresses cannot overflow.
constexpr int64_t kRangeSize = kLargeSegment << 26;

int64_t RoundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

int64_t SegmentSize(int64_t size) {
  if (size <= kLargestSmallRequest) return kSmallSegment;
  if (size < kOwnSegmentFrom) return kLargeSegment;
  return RoundUp(size, kSegmentUnit);
}

int64_t PageSize(bool small) { return small ? kSmallSegment : kLargeSegment; }

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
  return absl::OkStatus();
}

AllocatorModel::AllocatorModel(const AllocatorOptions& options) : options_(options) {}

int64_t AllocatorModel::RoundedSize(int64_t size) const {
  const int64_t divisions = options_.roundup_power2_divisions;
  if (divisions > 1 && size > kSmallestBlock * divisions) {
    return RoundToPowerDivision(size, divisions);
  }
  return std::max(kSmallestBlock, RoundUp(size, kSmallestBlock));
}

std::optional<AllocatorModel::Block> AllocatorModel::Allocate(Bytes size, uint8_t stream) {
  ++num_requests_;
  Request request{.size = RoundedSize(size.count), .stream = stream};
  request.segment_size = SegmentSize(request.size);
  request.small = request.size <= kLargestSmallRequest;

  Block block = BestFit(request);
  if (block == kNone) block = TakeSegment(request);
  if (block == kNone) return std::nullopt;

  if (ShouldSplit(at(block), request)) InsertFree(SplitOff(block, request.size, State::kFree));
  at(block).state = State::kAllocated;
  stats_.allocated.count += at(block).size;
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  return block;
}

void AllocatorModel::Free(Block block) {
  HPO_CHECK(at(block).state == State::kAllocated);
  stats_.allocated.count -= at(block).size;
  at(block).state = State::kFree;
  at(block).freed_at = num_requests_;
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
    const Block next = at(pool.At(place).block).next;
    const bool grows = next != kNone && at(next).state == State::kUnmapped;
    return pool.At(place).size + (grows ? at(next).size : 0);
  };
  for (FreePool::Place next = pool.After(found); next; next = pool.After(next)) {
    if (grown(next) >= grown(found)) break;
    found = next;
  }
  return found;
}

AllocatorModel::Block AllocatorModel::TakeSegment(const Request& request) {
  if (options_.garbage_collection_threshold > 0.0) CollectGarbage();
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
  if (!LimitAllows(request.segment_size)) return kNone;
  Reserve(request.segment_size);
  const int64_t address = next_address_;
  next_address_ += request.segment_size;
  return NewBlock({.address = address,
                   .size = request.segment_size,
                   .stream = request.stream,
                   .small = request.small});
}

bool AllocatorModel::ShouldSplit(const BlockData& block, const Request& request) const {
  const int64_t rest = block.size - request.size;
  if (block.small || options_.expandable_segments) return rest >= kSmallestBlock;
  return request.size < options_.max_split_bytes && rest > kLargestSmallRequest;
}

// ---- Expandable segments -----------------------------------------------------------------------

// A free block with unmapped space behind it, or unmapped space, of the request's size or more.
AllocatorModel::Block AllocatorModel::FindRange(const Request& request) {
  for (const Block first : ranges_) {
    if (at(first).stream != request.stream || at(first).small != request.small) continue;
    for (Block block = first; block != kNone; block = at(block).next) {
      if (at(block).state != State::kUnmapped) continue;
      const Block before = at(block).previous;
      const bool starts_before = before != kNone && at(before).state == State::kFree;
      int64_t room = 0;
      const Block start = starts_before ? before : block;
      for (Block b = start; b != kNone && at(b).state != State::kAllocated && room < request.size;
           b = at(b).next) {
        room += at(b).size;
      }
      if (room >= request.size) return start;
    }
  }
  const Block range = NewBlock({.address = next_address_,
                                .size = kRangeSize,
                                .state = State::kUnmapped,
                                .stream = request.stream,
                                .small = request.small});
  next_address_ += kRangeSize;
  ranges_.push_back(range);
  return range;
}

AllocatorModel::Block AllocatorModel::GrowRange(const Request& request) {
  if (!LimitAllows(request.segment_size)) return kNone;
  Block block = FindRange(request);
  if (at(block).state == State::kUnmapped) {
    block = MapPages(block, std::min(at(block).size, request.size));
  }
  while (block != kNone && at(block).size < request.size) {
    const Block next = at(block).next;
    block = MapPages(next, std::min(request.size - at(block).size, at(next).size));
  }
  if (block != kNone) EraseFree(block);
  return block;
}

AllocatorModel::Block AllocatorModel::MapPages(Block unmapped, int64_t size) {
  const int64_t mapped = std::min(RoundUp(size, PageSize(at(unmapped).small)), at(unmapped).size);
  if (!LimitAllows(mapped)) return kNone;
  Reserve(mapped);
  if (mapped < at(unmapped).size) SplitOff(unmapped, mapped, State::kUnmapped);
  at(unmapped).state = State::kFree;
  at(unmapped).freed_at = num_requests_;
  const Block merged = MergeFree(unmapped);
  InsertFree(merged);
  return merged;
}

// Gives back the whole pages inside a free block.
void AllocatorModel::UnmapPages(Block block) {
  const int64_t page = PageSize(at(block).small);
  const int64_t start = RoundUp(at(block).address, page);
  const int64_t end = (at(block).address + at(block).size) / page * page;
  if (start >= end) return;
  EraseFree(block);
  if (start > at(block).address) {
    const Block pages = SplitOff(block, start - at(block).address, State::kUnmapped);
    InsertFree(block);
    block = pages;
  }
  if (end < at(block).address + at(block).size) {
    InsertFree(SplitOff(block, end - at(block).address, State::kFree));
  }
  at(block).state = State::kUnmapped;
  stats_.reserved.count -= at(block).size;
  const Block next = at(block).next;
  if (next != kNone && at(next).state == State::kUnmapped) {
    at(block).size += at(next).size;
    at(block).next = at(next).next;
    if (at(block).next != kNone) at(at(block).next).previous = block;
    DropBlock(next);
  }
  const Block before = at(block).previous;
  if (before != kNone && at(before).state == State::kUnmapped) {
    at(before).size += at(block).size;
    at(before).next = at(block).next;
    if (at(before).next != kNone) at(at(before).next).previous = before;
    DropBlock(block);
  }
}

// ---- Giving memory back to the device ----------------------------------------------------------

// Frees wholly free large segments, those unused for longest first, until the threshold is met.
void AllocatorModel::CollectGarbage() {
  if (options_.limit.count == AllocatorOptions::kUnlimited || options_.expandable_segments) return;
  const auto threshold = static_cast<int64_t>(options_.garbage_collection_threshold *
                                              static_cast<double>(options_.limit.count));
  int64_t excess = stats_.reserved.count - threshold;
  bool freed_some = true;
  while (excess > 0 && freed_some) {
    freed_some = false;
    int64_t total_age = 0;
    std::vector<Block> whole;
    for (const Pools& pools : pools_) {
      for (const FreePool::Entry& entry : pools.large.Sorted()) {
        const BlockData& block = at(entry.block);
        if (block.previous != kNone || block.next != kNone) continue;
        whole.push_back(entry.block);
        total_age += num_requests_ - block.freed_at;
      }
    }
    if (whole.empty()) return;
    const int64_t mean_age = total_age / static_cast<int64_t>(whole.size());
    for (const Block block : whole) {
      if (excess <= 0 || num_requests_ - at(block).freed_at < mean_age) continue;
      excess -= at(block).size;
      ReturnSegment(block);
      freed_some = true;
    }
  }
}

// With a split size: one cached block large enough, or several oversize ones from the largest down.
bool AllocatorModel::ReleaseOversize(const Request& request) {
  if (options_.max_split_bytes == AllocatorOptions::kUnlimited || options_.expandable_segments) {
    return false;
  }
  const int64_t wanted = std::max(request.size, options_.max_split_bytes);
  const FreePool& pool = PoolOf(/*small=*/false, request.stream);
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
    const BlockData& block = at(entry.block);
    if (options_.expandable_segments) {
      UnmapPages(entry.block);
    } else if (block.previous == kNone && block.next == kNone) {
      ReturnSegment(entry.block);
    }
  }
}

void AllocatorModel::ReturnSegment(Block block) {
  EraseFree(block);
  stats_.reserved.count -= at(block).size;
  DropBlock(block);
}

// ---- Blocks ------------------------------------------------------------------------------------

bool AllocatorModel::LimitAllows(int64_t more) {
  const int64_t left = options_.limit.count - stats_.reserved.count;
  if (more > left) stats_.lacking.count = more - left;
  return more <= left;
}

void AllocatorModel::Reserve(int64_t bytes) {
  stats_.reserved.count += bytes;
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
}

// Leaves the first `size` bytes in `block`; the rest becomes a new block behind it, in no pool.
AllocatorModel::Block AllocatorModel::SplitOff(Block block, int64_t size, State rest) {
  BlockData data = at(block);
  data.address += size;
  data.size -= size;
  data.previous = block;
  data.state = rest;
  data.freed_at = num_requests_;
  const Block behind = NewBlock(data);
  if (data.next != kNone) at(data.next).previous = behind;
  at(block).size = size;
  at(block).next = behind;
  return behind;
}

// Joins a free block that is in no pool with its free neighbours; the result is in no pool.
AllocatorModel::Block AllocatorModel::MergeFree(Block block) {
  const Block next = at(block).next;
  if (next != kNone && at(next).state == State::kFree) {
    EraseFree(next);
    at(block).size += at(next).size;
    at(block).next = at(next).next;
    if (at(block).next != kNone) at(at(block).next).previous = block;
    DropBlock(next);
  }
  const Block before = at(block).previous;
  if (before == kNone || at(before).state != State::kFree) return block;
  EraseFree(before);
  at(before).size += at(block).size;
  at(before).next = at(block).next;
  if (at(before).next != kNone) at(at(before).next).previous = before;
  DropBlock(block);
  return before;
}

AllocatorModel::Block AllocatorModel::NewBlock(const BlockData& data) {
  if (unused_.empty()) {
    blocks_.push_back(data);
    return static_cast<Block>(blocks_.size() - 1);
  }
  const Block block = unused_.back();
  unused_.pop_back();
  at(block) = data;
  return block;
}

void AllocatorModel::DropBlock(Block block) {
  at(block).size = 0;
  unused_.push_back(block);
}

void AllocatorModel::InsertFree(Block block) {
  const BlockData& data = at(block);
  PoolOf(data.small, data.stream)
      .Insert({.size = data.size, .address = data.address, .block = block});
}

void AllocatorModel::EraseFree(Block block) {
  const BlockData& data = at(block);
  PoolOf(data.small, data.stream).Erase(data.size, data.address);
}

std::vector<AllocatorModel::Segment> AllocatorModel::Snapshot() const {
  std::vector<Segment> segments;
  for (Block first = 0; first < static_cast<Block>(blocks_.size()); ++first) {
    if (at(first).size == 0 || at(first).previous != kNone) continue;
    Segment segment{.address = at(first).address};
    for (Block block = first; block != kNone; block = at(block).next) {
      if (at(block).state == State::kUnmapped) continue;
      segment.size.count += at(block).size;
      segment.blocks.emplace_back(Bytes{at(block).size}, at(block).state == State::kAllocated);
    }
    if (segment.size > Bytes{}) segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  return segments;
}

}  // namespace hpo
