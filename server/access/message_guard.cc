#include "server/access/message_guard.h"

#include <algorithm>

namespace hpo::server {
namespace {

constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kEndsStream = 0x1;
constexpr uint8_t kPadded = 0x8;

}  // namespace

int64_t MessageGuard::Take(const char* data, size_t size) {
  int64_t longest = 0;
  while (size > 0) {
    size_t taken = 0;
    if (preface_left_ > 0) {
      taken = std::min(size, preface_left_);
      preface_left_ -= taken;
    } else if (num_head_ < kHeadBytes) {
      taken = std::min(size, kHeadBytes - num_head_);
      std::copy_n(data, taken, head_.begin() + static_cast<std::ptrdiff_t>(num_head_));
      num_head_ += taken;
      if (num_head_ == kHeadBytes) BeginFrame();
    } else {
      taken = std::min(size, payload_left_);
      longest = std::max(longest, TakePayload(data, taken));
    }
    data += taken;
    size -= taken;
    const bool whole = num_head_ == kHeadBytes && payload_left_ == 0;
    if (!whole) continue;
    num_head_ = 0;
    const bool ends = (type_ == kData || type_ == kHeaders) && (flags_ & kEndsStream) != 0;
    if (ends || type_ == kResetStream) streams_.erase(stream_);
  }
  return longest;
}

void MessageGuard::BeginFrame() {
  payload_left_ = size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | head_[2];
  type_ = head_[3];
  flags_ = head_[4];
  stream_ = uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 | uint32_t{head_[7]} << 8 |
            uint32_t{head_[8]};
  stream_ &= 0x7fffffff;
  padding_ = 0;
  wants_padding_ = type_ == kData && (flags_ & kPadded) != 0;
}

int64_t MessageGuard::TakePayload(const char* data, size_t size) {
  if (wants_padding_ && size > 0) {
    padding_ = static_cast<uint8_t>(*data);
    wants_padding_ = false;
    ++data;
    --size;
    --payload_left_;
  }
  // Padding is what comes last.
  const size_t useful = payload_left_ > padding_ ? std::min(size, payload_left_ - padding_) : 0;
  payload_left_ -= size;
  return type_ == kData ? TakeData(data, useful) : 0;
}

int64_t MessageGuard::TakeData(const char* data, size_t size) {
  int64_t longest = 0;
  while (size > 0) {
    if (streams_.size() >= kMostStreams && !streams_.contains(stream_)) {
      streams_.erase(streams_.begin());  // the oldest
    }
    Stream& stream = streams_[stream_];
    size_t taken = 0;
    if (stream.num_prefix < kPrefixBytes) {
      taken = std::min(size, kPrefixBytes - stream.num_prefix);
      std::copy_n(data, taken,
                  stream.prefix.begin() + static_cast<std::ptrdiff_t>(stream.num_prefix));
      stream.num_prefix += taken;
      if (stream.num_prefix == kPrefixBytes) {
        for (size_t i = 1; i < kPrefixBytes; ++i) stream.left = stream.left << 8 | stream.prefix[i];
        longest = std::max(longest, stream.left);
      }
    } else {
      taken = std::min(size, static_cast<size_t>(stream.left));
      stream.left -= static_cast<int64_t>(taken);
    }
    data += taken;
    size -= taken;
    if (stream.num_prefix == kPrefixBytes && stream.left == 0) streams_.erase(stream_);
  }
  return longest;
}

}  // namespace hpo::server
