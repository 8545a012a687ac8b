#include "server/access/message_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace hpo::server {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr int kData = 0;
constexpr int kHeaders = 1;
constexpr int kResetStream = 3;
constexpr int kSettings = 4;
constexpr int kEndsStream = 1;
constexpr int kPadded = 8;

std::string BigEndian(uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i));
  return text;
}

std::string Frame(int type, int flags, uint32_t stream, const std::string& payload) {
  return BigEndian(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) +
         static_cast<char>(flags) + BigEndian(stream, 4) + payload;
}

// The beginning of a message that says that it has `length` bytes.
std::string Prefix(uint32_t length) { return std::string(1, '\0') + BigEndian(length, 4); }

std::string Message(const std::string& content) {
  return Prefix(static_cast<uint32_t>(content.size())) + content;
}

// The longest message of `sent` in pieces of `piece` bytes.
int64_t LongestOf(const std::string& sent, size_t piece) {
  MessageGuard guard;
  int64_t longest = 0;
  for (size_t at = 0; at < sent.size(); at += piece) {
    const std::string part = sent.substr(at, piece);
    longest = std::max(longest, guard.Take(part.data(), part.size()));
  }
  return longest;
}

TEST(MessageGuard, FindsLengthsHoweverTheBytesArrive) {
  const std::string before = kPreface + Frame(kSettings, 0, 0, "abcdef") +
                             Frame(kHeaders, 0, 1, "any") + Frame(kHeaders, 0, 3, "any");
  const std::string whole = Message(std::string(300, 'x'));
  const struct {
    const char* what;
    std::string sent;
    int64_t longest;
  } cases[] = {
      {"no message", before, 0},
      {"one", before + Frame(kData, kEndsStream, 1, whole), 300},
      {"two in a frame", before + Frame(kData, 0, 1, Message("ab") + Message("abc")), 3},
      {"in many frames",
       before + Frame(kData, 0, 1, whole.substr(0, 2)) + Frame(kData, 0, 1, "") +
           Frame(kData, 0, 1, whole.substr(2, 100)) + Frame(kData, 0, 1, whole.substr(102)) +
           Frame(kData, 0, 1, Message("four")),
       300},
      {"of two streams at once",
       before + Frame(kData, 0, 1, whole.substr(0, 50)) + Frame(kData, 0, 3, Prefix(5) + "ab") +
           Frame(kData, 0, 1, whole.substr(50)) + Frame(kData, 0, 3, "cde" + Message("x")),
       300},
      {"padded",
       before + Frame(kData, kPadded, 1, "\x04" + Message("abc") + std::string(4, '\xff')) +
           Frame(kData, 0, 1, Message("abcd")),
       4},
      {"nothing but padding",
       before + Frame(kData, kPadded, 1, "\x03" + std::string(3, '\xff')) +
           Frame(kData, 0, 1, Message("ab")),
       2},
      {"the largest", before + Frame(kData, 0, 1, Prefix(0xffffffff)), 0xffffffff},
      {"headers with bytes of a message", before + Frame(kHeaders, 0, 5, Prefix(1 << 30)), 0},
  };
  for (const auto& one : cases) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{64}, one.sent.size()}) {
      SCOPED_TRACE(std::string(one.what) + " in pieces of " + std::to_string(piece));
      EXPECT_EQ(LongestOf(one.sent, piece), one.longest);
    }
  }
}

TEST(MessageGuard, AStreamThatEndedWithinAMessageDoesNotConfuseTheNext) {
  for (const std::string& end :
       {Frame(kResetStream, 0, 1, "code"), Frame(kData, kEndsStream, 1, ""),
        Frame(kHeaders, kEndsStream, 1, "x")}) {
    const std::string sent = kPreface + Frame(kData, 0, 1, Prefix(1000) + "ab") + end +
                             Frame(kData, 0, 1, Message(std::string(2000, 'x')));
    EXPECT_EQ(LongestOf(sent, 16), 2000);
  }
}

TEST(MessageGuard, WhatIsNoHttp2IsTaken) {
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  MessageGuard guard;
  guard.Take(noise.data(), noise.size());
  // Padding that is longer than its frame.
  EXPECT_EQ(LongestOf(kPreface + Frame(kData, kPadded, 1, "\xff" + Message("abc")), 5), 0);
}

TEST(MessageGuard, KeepsNoMoreThanSomeStreams) {
  MessageGuard guard;
  guard.Take(kPreface.data(), kPreface.size());
  for (uint32_t stream = 1; stream < 100'000; stream += 2) {
    const std::string begun = Frame(kData, 0, stream, Prefix(10) + "a");
    EXPECT_EQ(guard.Take(begun.data(), begun.size()), 10);
  }
}

}  // namespace
}  // namespace hpo::server
