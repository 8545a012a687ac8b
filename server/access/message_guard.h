// Finds messages that are too long in what a client sends, before gRPC does: gRPC 1.51 keeps a
// message in memory until it is whole, and only then compares its length with the limit.
// Sources: RFC 9113, sections 3.4, 4.1, 6.1 and 6.4; gRPC over HTTP/2, Length-Prefixed-Message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace hpo::server {

// One connection's bytes, from its first one. Not thread-safe.
class MessageGuard {
 public:
  // Takes the next bytes, of any number. The length of the longest message that begins in them; 0:
  // none does. What is no HTTP/2 is gRPC's to refuse.
  int64_t Take(const char* data, size_t size);

 private:
  static constexpr size_t kHeadBytes = 9;
  static constexpr size_t kPrefixBytes = 5;
  static constexpr size_t kMostStreams = 4096;  // that are within a message

  // Where a stream is within a message. One that is between two messages is not kept.
  struct Stream {
    std::array<uint8_t, kPrefixBytes> prefix{};
    size_t num_prefix = 0;
    int64_t left = 0;  // bytes of the message
  };

  void BeginFrame();
  // `size` bytes of the frame's payload.
  int64_t TakePayload(const char* data, size_t size);
  int64_t TakeData(const char* data, size_t size);

  size_t preface_left_ = 24;
  std::array<uint8_t, kHeadBytes> head_{};
  size_t num_head_ = 0;
  // Of the frame that is under way:
  uint8_t type_ = 0;
  uint8_t flags_ = 0;
  uint32_t stream_ = 0;
  size_t payload_left_ = 0;
  size_t padding_ = 0;          // bytes at the end of the payload
  bool wants_padding_ = false;  // the next byte is the length of the padding
  std::map<uint32_t, Stream> streams_;
};

}  // namespace hpo::server
