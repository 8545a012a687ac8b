#include "worker/agent/attempt/attempt_log.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/files/read_file.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

class AttemptLogTest : public ::testing::Test {
 protected:
  AttemptLogTest() {
    std::string pattern = ::testing::TempDir() + "/attempt_log_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Print("an attempt before\n");
  }
  ~AttemptLogTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/log"; }
  void Print(const std::string& text) const {
    std::ofstream(path(), std::ios::app | std::ios::binary) << text;
  }

  std::string folder_;
};

TEST_F(AttemptLogTest, HasWhatCameSinceItBegan) {
  const AttemptLog log(path());
  EXPECT_EQ(log.Tail(), "");
  Print("one\ntwo\nthr");
  EXPECT_EQ(log.Tail(), "one\ntwo\nthr");
  EXPECT_EQ(log.LastLines(1), "thr");
}

TEST_F(AttemptLogTest, ShowsProgressBarsAndColoursAsTheyLookAtLast) {
  const AttemptLog log(path());
  Print("\x1b[32mloss\x1b[0m 0.5\n 1 %\r 50 %\r100 %\nbad \xff byte\n");
  EXPECT_EQ(log.Tail(), "loss 0.5\n100 %\nbad ? byte\n");
}

TEST_F(AttemptLogTest, HasWholeLinesOfALongLog) {
  const AttemptLog log(path());
  std::string text;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&text, "step ", i, "\n");
  Print(text);
  const std::string tail = log.Tail();
  EXPECT_LE(std::ssize(tail), kLogTailLimit.most);
  EXPECT_GT(std::ssize(tail), kLogTailLimit.most - 20);
  EXPECT_TRUE(absl::StartsWith(tail, "step "));
  EXPECT_TRUE(absl::EndsWith(text, tail));
}

TEST_F(AttemptLogTest, HasTheEndOfALineWithoutEnd) {
  const AttemptLog log(path());
  for (int i = 0; i < 60'000; ++i) Print(absl::StrCat("\r", i, " of 60000"));
  EXPECT_EQ(log.Tail(), "59999 of 60000");
}

TEST_F(AttemptLogTest, TellsWhatIsNewEachTenSecondsAtMost) {
  const absl::Duration start = absl::Seconds(100);
  AttemptLog log(path());
  EXPECT_FALSE(log.News(start).has_value()) << "nothing was printed";
  Print("one\n");
  EXPECT_FALSE(log.News(start + absl::Seconds(9)).has_value()) << "too soon";
  EXPECT_EQ(log.next_news(), start + absl::Seconds(10));
  EXPECT_EQ(log.News(log.next_news()), "one\n");
  EXPECT_FALSE(log.News(log.next_news()).has_value()) << "known";
  Print("two\n");
  EXPECT_EQ(log.News(log.next_news()), "one\ntwo\n");
}

TEST_F(AttemptLogTest, IsCopiedWhole) {
  const AttemptLog log(path());
  Print(std::string(300'000, 'x') + "\n");
  ASSERT_TRUE(log.CopyTo(folder_).ok());
  EXPECT_EQ(ReadFile(folder_ + "/trainer.log").value(), std::string(300'000, 'x') + "\n");
  EXPECT_TRUE(absl::IsNotFound(log.CopyTo("/nowhere")));
}

TEST_F(AttemptLogTest, OfAFileThatIsGoneThereIsNothing) {
  AttemptLog log(folder_ + "/other");
  EXPECT_EQ(log.Tail(), "");
  EXPECT_FALSE(log.News(absl::Seconds(1)).has_value());
}

}  // namespace
}  // namespace hpo::agent
