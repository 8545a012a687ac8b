#include "worker/command/ranks/rank_reader.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::command {
namespace {

// As torchrun of torch 2.11 prints it.
std::vector<std::string> Summary(int rank, int exit_code) {
  return {"train.py FAILED",
          "Failures:",
          "[1]:",
          "  time      : 2026-11-28_23:01:13",
          "  host      : localhost",
          "  rank      : 0 (local_rank: 0)",
          "  exitcode  : -15 (pid: 5421)",
          "  error_file: <N/A>",
          "  traceback : Signal 15 (SIGTERM) received by PID 5421",
          "Root Cause (first observed failure):",
          "[0]:",
          "  time      : 2026-11-28_23:01:13",
          "  host      : localhost",
          "  rank      : " + std::to_string(rank) + " (local_rank: " + std::to_string(rank) + ")",
          "  exitcode  : " + std::to_string(exit_code) + " (pid: 5422)",
          "  error_file: <N/A>"};
}

void TakeAll(const std::vector<std::string>& lines, RankReader& reader) {
  for (const std::string& line : lines) reader.Take(line);
}

void TakeOom(const std::string& line, RankReader& reader) {
  reader.Take(line);
  reader.NoteOom(line);
}

TEST(RankOf, KnowsTheBeginningsOfPyTorchAndTorchrun) {
  const std::pair<const char*, std::optional<int64_t>> cases[] = {
      {"[rank1]: torch.OutOfMemoryError", 1},
      {"[rank12]:   File \"a.py\"", 12},
      {"[default3]:CUDA out of memory", 3},
      {"[default0]:[rank2]: CUDA out of memory", 2},
      {"[epoch3]: CUDA out of memory", std::nullopt},
      {"[rank]: x", std::nullopt},
      {"rank1: x", std::nullopt},
      {"x [rank1]: y", std::nullopt},
      {"[rank99999999999999999999]: x", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& [line, expected] : cases) {
    SCOPED_TRACE(line);
    EXPECT_EQ(RankOf(line), expected);
  }
  EXPECT_EQ(WithoutRank("[default0]:[rank2]: CUDA out of memory"), "CUDA out of memory");
  EXPECT_EQ(WithoutRank("CUDA out of memory"), "CUDA out of memory");
}

TEST(RankReader, TheLineItselfNamesTheRank) {
  RankReader reader;
  EXPECT_EQ(reader.oom_rank(), std::nullopt);
  TakeOom("[rank1]: torch.OutOfMemoryError: CUDA out of memory.", reader);
  TakeAll(Summary(0, 1), reader);
  EXPECT_EQ(reader.oom_rank(), 1);
  reader.ForgetOom();
  EXPECT_EQ(reader.oom_rank(), std::nullopt);
}

TEST(RankReader, ElseTheRootCauseOfTheSummary) {
  RankReader reader;
  TakeOom("torch.OutOfMemoryError: CUDA out of memory.", reader);
  EXPECT_EQ(reader.oom_rank(), std::nullopt);
  TakeAll(Summary(3, 1), reader);
  EXPECT_EQ(reader.oom_rank(), 3);
}

TEST(RankReader, ElseTheRankWhoseTracebackTheSummaryShows) {
  RankReader reader;
  TakeAll(Summary(2, 1), reader);
  TakeOom("  torch.OutOfMemoryError: CUDA out of memory.", reader);
  EXPECT_EQ(reader.oom_rank(), 2);
}

TEST(RankReader, ARankThatWasKilled) {
  RankReader other;
  TakeAll(Summary(1, 1), other);
  EXPECT_FALSE(other.killed());
  RankReader killed;
  TakeAll(Summary(1, -9), killed);
  EXPECT_TRUE(killed.killed());
}

}  // namespace
}  // namespace hpo::command
