#include "worker/channel/message_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

using testing::HasSubstr;

TEST(ProtocolDescriptor, IsTheEnvironmentsAndIsNotInherited) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ::setenv("HPO_TRAINER_FD", std::to_string(pair[0]).c_str(), /*overwrite=*/1);
  const absl::StatusOr<int> fd = ProtocolDescriptor();
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(*fd, pair[0]);
  EXPECT_EQ(::fcntl(*fd, F_GETFD), FD_CLOEXEC);
  ::close(pair[0]);
  ::close(pair[1]);
  const absl::Status closed = ProtocolDescriptor().status();
  EXPECT_THAT(closed.message(), HasSubstr(absl::StrCat("HPO_TRAINER_FD: file descriptor ", *fd,
                                                       ": expected the worker's end")));
  for (const char* const named : {"", "socket", "3x", "-1"}) {
    ::setenv("HPO_TRAINER_FD", named, /*overwrite=*/1);
    EXPECT_EQ(ProtocolDescriptor().status().message(),
              absl::StrCat("HPO_TRAINER_FD: expected a file descriptor, got '", named, "'"));
  }
  ::unsetenv("HPO_TRAINER_FD");
}

class MessageChannelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }  // as main does
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0);
    channel_.emplace(fds_[0]);
  }
  ~MessageChannelTest() override {
    Hang();
    ::close(fds_[0]);
  }

  void Write(const std::string& text) {
    ASSERT_EQ(::write(fds_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void WriteMessage(const DownMessage& message) { Write(EncodeDown(message) + "\n"); }

  // Closes the supervisor's end.
  void Hang() {
    if (fds_[1] >= 0) ::close(fds_[1]);
    fds_[1] = -1;
  }

  // What the trainer sent, up to the end of a line.
  std::string ReadLine() {
    std::string line;
    char chunk[4096];
    while (line.empty() || line.back() != '\n') {
      const ssize_t size = ::read(fds_[1], chunk, sizeof(chunk));
      if (size <= 0) break;
      line.append(chunk, static_cast<size_t>(size));
    }
    return line;
  }

  static TrainerJob Job(int64_t trial) {
    TrainerJob job;
    job.study = "s";
    job.trial = TrialNumber{trial};
    return job;
  }

  int fds_[2] = {-1, -1};
  std::optional<MessageChannel> channel_;
};

TEST_F(MessageChannelTest, GivesJobsInOrderThenEndsOnShutdown) {
  WriteMessage(Job(1));
  WriteMessage(Job(2));
  WriteMessage(ShutdownRequest{});
  EXPECT_EQ(channel_->NextJob()->trial, TrialNumber{1});
  EXPECT_EQ(channel_->NextJob()->trial, TrialNumber{2});
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
}

TEST_F(MessageChannelTest, PollGivesAStopAgainAndAgain) {
  WriteMessage(Job(1));
  ASSERT_TRUE(channel_->NextJob().ok());
  EXPECT_FALSE(channel_->Poll().has_value());
  WriteMessage(StopRequest{.reason = "pruned"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(channel_->Poll().has_value());
    EXPECT_EQ(channel_->Poll()->reason, "pruned");
  }
}

TEST_F(MessageChannelTest, AStopThatComesTooLateDoesNotReachTheNextJob) {
  WriteMessage(Job(1));
  ASSERT_TRUE(channel_->NextJob().ok());
  WriteMessage(StopRequest{.reason = "pruned"});
  WriteMessage(Job(2));
  ASSERT_TRUE(channel_->NextJob().ok());
  EXPECT_FALSE(channel_->Poll().has_value());
}

TEST_F(MessageChannelTest, AShutdownDuringAnAttemptDrainsIt) {
  WriteMessage(Job(1));
  ASSERT_TRUE(channel_->NextJob().ok());
  WriteMessage(ShutdownRequest{});
  ASSERT_TRUE(channel_->Poll().has_value());
  EXPECT_EQ(channel_->Poll()->reason, "drain");
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
}

TEST_F(MessageChannelTest, TheEndOfTheChannelEndsEverything) {
  WriteMessage(Job(1));
  Write("{\"type\":");  // torn
  ASSERT_TRUE(channel_->NextJob().ok());
  EXPECT_FALSE(channel_->Poll().has_value());
  Hang();
  ASSERT_TRUE(channel_->Poll().has_value());
  EXPECT_EQ(channel_->Poll()->reason, "lease lost");
  channel_->Send(ProgressMessage{});  // dropped, no signal
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
}

TEST_F(MessageChannelTest, ASecondJobDuringAnAttemptIsAnError) {
  WriteMessage(Job(1));
  ASSERT_TRUE(channel_->NextJob().ok());
  WriteMessage(Job(2));
  EXPECT_TRUE(channel_->Poll().has_value());
  EXPECT_THAT(ReadLine(), HasSubstr("expected no second job while one runs"));
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
}

TEST_F(MessageChannelTest, NonsenseIsRefusedWithItsReason) {
  Write("hello\n");
  EXPECT_EQ(channel_->NextJob().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(MessageChannelTest, ALineThatIsTooLongIsRefusedWithItsLimit) {
  const auto too_long = HasSubstr("a line of the worker's: expected at most 4194304 bytes, got ");
  const std::string text(MessageChannel::kMaxLineBytes + 1, 'x');  // all of it is read
  std::thread writer([&] { Write(text); });
  const absl::Status before_a_job = channel_->NextJob().status();
  writer.join();
  EXPECT_EQ(before_a_job.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(before_a_job.message()), too_long);
}

TEST_F(MessageChannelTest, ALineThatIsTooLongEndsAnAttemptAndSaysSo) {
  WriteMessage(Job(1));
  ASSERT_TRUE(channel_->NextJob().ok());
  const std::string text(MessageChannel::kMaxLineBytes + 1, 'x');  // all of it is read
  std::thread writer([&] { Write(text); });
  while (!channel_->Poll().has_value()) std::this_thread::yield();
  EXPECT_THAT(ReadLine(),
              HasSubstr("a line of the worker's: expected at most 4194304 bytes, got 4"));
  writer.join();
  EXPECT_EQ(channel_->Poll()->reason, "lease lost");
  EXPECT_TRUE(absl::IsCancelled(channel_->NextJob().status()));
}

TEST_F(MessageChannelTest, MessagesArriveWholeThroughASmallSocket) {
  // More than the socket holds, so that the writer must wait for the reader.
  const std::string text(1 << 20, 'x');
  std::string line;
  std::thread reader([&] { line = ReadLine(); });
  channel_->Send(LogMessage{.level = "info", .text = text});
  reader.join();
  const auto message = DecodeUp(line);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(std::get<LogMessage>(*message).text, text);
}

}  // namespace
}  // namespace hpo::command
