#include "worker/agent/process/line_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LineChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    channel_.emplace(UniqueFd(pair[0]), kMaxLine);
    other_.Reset(pair[1]);
  }

  void Send(const std::string& text) {
    ASSERT_EQ(write(other_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  static constexpr size_t kMaxLine = 1000;
  std::optional<LineChannel> channel_;
  UniqueFd other_;
};

TEST_F(LineChannelTest, NothingToReadDoesNotBlock) {
  const absl::StatusOr<ReceivedLines> received = channel_->ReadAvailable();
  ASSERT_TRUE(received.ok());
  EXPECT_THAT(received->lines, IsEmpty());
  EXPECT_FALSE(received->closed);
}

TEST_F(LineChannelTest, LinesArriveWholeHoweverTheyAreCut) {
  Send("one\ntw");
  EXPECT_THAT(channel_->ReadAvailable()->lines, ElementsAre("one"));
  Send("o");
  EXPECT_THAT(channel_->ReadAvailable()->lines, IsEmpty());
  Send("\n\nthree\nfour");
  EXPECT_THAT(channel_->ReadAvailable()->lines, ElementsAre("two", "three"));
  Send("\n");
  EXPECT_THAT(channel_->ReadAvailable()->lines, ElementsAre("four"));
}

TEST_F(LineChannelTest, WhatWasSentBeforeTheEndIsStillRead) {
  Send("last\nhalf");
  other_.Reset();
  const absl::StatusOr<ReceivedLines> received = channel_->ReadAvailable();
  ASSERT_TRUE(received.ok());
  EXPECT_THAT(received->lines, ElementsAre("last"));
  EXPECT_TRUE(received->closed);
  EXPECT_EQ(received->torn, "half");
  EXPECT_TRUE(channel_->ReadAvailable()->closed);
}

TEST_F(LineChannelTest, ALineOfExactlyTheLimitPasses) {
  const std::string line(kMaxLine, 'x');
  Send(line + "\n");
  EXPECT_THAT(channel_->ReadAvailable()->lines, ElementsAre(line));
}

TEST_F(LineChannelTest, ALineWithoutEndIsRefusedBeforeItFillsTheMemory) {
  Send("start of it " + std::string(kMaxLine, 'x'));
  const absl::Status status = channel_->ReadAvailable().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start of it"));
  EXPECT_TRUE(channel_->ReadAvailable()->closed);
}

TEST_F(LineChannelTest, WritesOneFramedLine) {
  ASSERT_TRUE(channel_->WriteLine("hello", absl::Seconds(1)).ok());
  char buffer[16] = {};
  ASSERT_EQ(read(other_.get(), buffer, sizeof buffer), 6);
  EXPECT_STREQ(buffer, "hello\n");
}

TEST_F(LineChannelTest, RefusesToBreakTheFraming) {
  EXPECT_TRUE(absl::IsInvalidArgument(channel_->WriteLine("a\nb", absl::Seconds(1))));
}

TEST_F(LineChannelTest, WritingToNobodyIsAnErrorNotASignal) {
  other_.Reset();
  EXPECT_TRUE(absl::IsUnavailable(channel_->WriteLine("hello", absl::Seconds(1))));
}

TEST_F(LineChannelTest, AReaderThatDoesNotReadEndsTheWaiting) {
  const std::string long_line(4 << 20, 'x');
  EXPECT_TRUE(absl::IsDeadlineExceeded(channel_->WriteLine(long_line, absl::Milliseconds(20))));
}

TEST_F(LineChannelTest, ASlowReaderGetsALongLineWhole) {
  const std::string long_line(1 << 20, 'x');
  std::string got;
  std::thread reader([&] {
    char buffer[4096];
    while (got.empty() || got.back() != '\n') {
      const ssize_t count = read(other_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      got.append(buffer, static_cast<size_t>(count));
    }
  });
  EXPECT_TRUE(channel_->WriteLine(long_line, absl::Seconds(20)).ok());
  reader.join();
  EXPECT_EQ(got, long_line + "\n");
}

}  // namespace
}  // namespace hpo::agent
