#include "worker/trainer/checkpoints/checkpoint_store.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/small_disk.h"

namespace hpo::trainer {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointStoreTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }

  CheckpointStore Store(int64_t attempt, Bytes quota = Bytes{}) const {
    return CheckpointStore(Trial(7), AttemptNumber{attempt}, quota);
  }
  std::string Trial(int number) const { return absl::StrCat(root_, "/study/", number); }

  // A checkpoint of one file with `content`.
  absl::StatusOr<Checkpoint> Write(CheckpointStore& store, int64_t step,
                                   const std::string& content) {
    notes_.clear();
    return store.Write(
        step, Bytes{static_cast<int64_t>(content.size())},
        [&content](const std::string& folder) {
          fs::create_directories(folder + "/best");
          HPO_RETURN_IF_ERROR(WriteFileDurably(folder + "/best/model", "m"));
          return WriteFileDurably(folder + "/state", content);
        },
        notes_);
  }

  static std::vector<int64_t> Steps(const CheckpointStore& store) {
    std::vector<int64_t> steps;
    for (const Checkpoint& checkpoint : store.List()) steps.push_back(checkpoint.step);
    return steps;
  }

  std::string root_ = absl::StrCat(testing::TempDir(), "/checkpoints_", RandomId());
  CheckpointNotes notes_;
};

TEST_F(CheckpointStoreTest, WhereNothingWasWrittenThereIsNone) {
  EXPECT_THAT(Store(1).List(), IsEmpty());
}

TEST_F(CheckpointStoreTest, ANewCheckpointTakesTheOlderOnesPlace) {
  CheckpointStore store = Store(1);
  ASSERT_TRUE(Write(store, 10, "ten").ok());
  const auto written = Write(store, 20, "twenty");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(Steps(store), ElementsAre(20));
  EXPECT_EQ(ReadFile(written->folder + "/state").value(), "twenty");
  EXPECT_TRUE(store.Verify(*written).ok());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(CheckpointStoreTest, TheSameStepIsReplaced) {
  CheckpointStore store = Store(1);
  ASSERT_TRUE(Write(store, 10, "first").ok());
  const auto again = Write(store, 10, "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ReadFile(again->folder + "/state").value(), "again");
  EXPECT_THAT(Steps(store), ElementsAre(10));
}

TEST_F(CheckpointStoreTest, AnAttemptThatWasGivenUpRemovesNothingOfALaterOne) {
  CheckpointStore old_attempt = Store(1);
  CheckpointStore new_attempt = Store(2);
  ASSERT_TRUE(Write(old_attempt, 10, "a").ok());
  ASSERT_TRUE(Write(new_attempt, 20, "b").ok());
  EXPECT_THAT(Steps(new_attempt), ElementsAre(20));
  ASSERT_TRUE(Write(old_attempt, 30, "c").ok());
  EXPECT_THAT(Steps(new_attempt), ElementsAre(30, 20));
  ASSERT_TRUE(Write(old_attempt, 20, "d").ok());
  const std::vector<Checkpoint> all = new_attempt.List();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].attempt.value, 2);  // of equal steps the later attempt's first
}

TEST_F(CheckpointStoreTest, WhatIsTornIsTold) {
  CheckpointStore store = Store(1);
  const struct {
    const char* what;
    void (*tear)(const std::string& folder);
    const char* message;
  } cases[] = {
      {"cut", [](const std::string& folder) { fs::resize_file(folder + "/state", 3); }, "got 3"},
      {"flipped", [](const std::string& folder) { std::ofstream(folder + "/state") << "qwerty"; },
       "checksum"},
      {"gone", [](const std::string& folder) { fs::remove(folder + "/best/model"); },
       "best/model: No such file"},
      {"no manifest", [](const std::string& folder) { fs::remove(folder + "/manifest.json"); },
       "manifest.json"},
      {"half a manifest",
       [](const std::string& folder) { fs::resize_file(folder + "/manifest.json", 10); },
       "manifest.json"},
      {"another manifest",
       [](const std::string& folder) { std::ofstream(folder + "/manifest.json") << "[1]"; },
       "manifest.json"},
  };
  for (const auto& [what, tear, message] : cases) {
    SCOPED_TRACE(what);
    const auto written = Write(store, 10, "azerty");
    ASSERT_TRUE(written.ok()) << written.status();
    ASSERT_TRUE(store.Verify(*written).ok());
    tear(written->folder);
    const absl::Status verified = store.Verify(*written);
    EXPECT_TRUE(absl::IsDataLoss(verified)) << verified;
    EXPECT_THAT(verified.message(), HasSubstr(message));
  }
}

TEST_F(CheckpointStoreTest, AFullDiskCostsTheOldestFirst) {
  CheckpointStore first = Store(1);
  CheckpointStore second = Store(2);
  ASSERT_TRUE(Write(second, 20, "b").ok());
  ASSERT_TRUE(Write(first, 10, "a").ok());  // an attempt that was given up
  std::set<size_t> left;
  int fails = 1;
  const auto written = second.Write(
      30, Bytes{1},
      [&](const std::string& folder) {
        left.insert(second.List().size());
        if (fails-- > 0) return absl::ResourceExhaustedError("disk: No space left on device");
        return WriteFileDurably(folder + "/state", "c");
      },
      notes_);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(left, ElementsAre(1u, 2u));
  EXPECT_THAT(notes_, ElementsAre("removed the checkpoint of step 10 to make room"));
  EXPECT_THAT(Steps(second), ElementsAre(30));
}

TEST_F(CheckpointStoreTest, AFullDiskNeverCostsTheLastWholeOne) {
  CheckpointStore first = Store(1);
  ASSERT_TRUE(Write(first, 10, "ten").ok());
  CheckpointStore second = Store(2);
  const std::string torn = Trial(7) + "/00000015-1";
  const auto full = [](const std::string&) { return absl::ResourceExhaustedError("full"); };
  for (const bool has_torn_one : {true, false}) {
    SCOPED_TRACE(has_torn_one);
    if (has_torn_one) fs::create_directories(torn);
    notes_.clear();
    const auto written = second.Write(20, Bytes{1}, full, notes_);
    EXPECT_TRUE(absl::IsResourceExhausted(written.status()));
    EXPECT_THAT(Steps(second), ElementsAre(10));
    EXPECT_TRUE(second.Verify(second.List()[0]).ok());
    EXPECT_EQ(notes_.size(), has_torn_one ? 1u : 0u);
  }
}

TEST_F(CheckpointStoreTest, ADiskThatIsReallyFullKeepsTheLastWholeOne) {
  const SmallDisk disk(KiB(512));
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const std::string trial = disk.path() + "/study/7";
  CheckpointStore first(trial, AttemptNumber{1}, Bytes{});
  CheckpointStore second(trial, AttemptNumber{2}, Bytes{});
  ASSERT_TRUE(Write(second, 20, std::string(120'000, 'b')).ok());
  ASSERT_TRUE(Write(first, 10, std::string(120'000, 'a')).ok());
  ASSERT_TRUE(Write(second, 30, std::string(300'000, 'c')).ok());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("of step 10 to make room")));
  EXPECT_THAT(Steps(second), ElementsAre(30));

  const auto refused = Write(second, 40, std::string(300'000, 'd'));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_THAT(notes_, IsEmpty());
  ASSERT_THAT(Steps(second), ElementsAre(30));
  EXPECT_TRUE(second.Verify(second.List()[0]).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(trial), {}), 1) << "nothing half-written stays";
}

TEST_F(CheckpointStoreTest, WhereNothingMakesRoomNothingIsLeftBehind) {
  CheckpointStore store = Store(1);
  const auto written = store.Write(
      30, Bytes{1},
      [&](const std::string& folder) {
        std::ofstream(folder + "/half") << "x";
        return absl::ResourceExhaustedError("full");
      },
      notes_);
  EXPECT_TRUE(absl::IsResourceExhausted(written.status()));
  EXPECT_TRUE(fs::is_empty(Trial(7)));
}

TEST_F(CheckpointStoreTest, AnotherErrorKeepsWhatThereIs) {
  CheckpointStore store = Store(1);
  ASSERT_TRUE(Write(store, 10, "ten").ok());
  const auto written = store.Write(
      20, Bytes{1}, [](const std::string&) { return absl::UnavailableError("broken"); }, notes_);
  EXPECT_EQ(written.status().message(), "broken");
  EXPECT_THAT(Steps(store), ElementsAre(10));
}

TEST_F(CheckpointStoreTest, TheQuotaCountsTheStudysOtherTrials) {
  fs::create_directories(Trial(8));
  std::ofstream(Trial(8) + "/state") << std::string(1000, 'x');
  CheckpointStore store = Store(1, Bytes{2000});
  ASSERT_TRUE(Write(store, 10, std::string(900, 'y')).ok());
  // The one before does not count: it goes.
  ASSERT_TRUE(Write(store, 20, std::string(900, 'y')).ok());
  const auto refused = Write(store, 30, std::string(1200, 'y'));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("may take 1.95 KiB"));
  EXPECT_THAT(Steps(store), ElementsAre(20));
}

TEST_F(CheckpointStoreTest, RemainsOfAWriteThatWasKilledGoAway) {
  fs::create_directories(Trial(7) + "/.unfinished-1/best");
  fs::create_directories(Trial(7) + "/.unfinished-9");
  fs::create_directories(Trial(7) + "/notes");
  CheckpointStore store = Store(2);
  EXPECT_THAT(store.List(), IsEmpty());
  ASSERT_TRUE(Write(store, 10, "ten").ok());
  EXPECT_FALSE(fs::exists(Trial(7) + "/.unfinished-1"));
  EXPECT_TRUE(fs::exists(Trial(7) + "/.unfinished-9"));  // a later attempt's
  EXPECT_TRUE(fs::exists(Trial(7) + "/notes"));
}

}  // namespace
}  // namespace hpo::trainer
