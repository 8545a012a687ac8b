#include "worker/agent/attempt/outbox.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/few_descriptors.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

OutboxEntry Entry(int number) {
  OutboxEntry entry;
  entry.request_id = "request-" + std::to_string(number);
  entry.request.lease = {
      .trial = {.study = "criteria", .number = {number}}, .attempt = {2}, .token = "token"};
  entry.request.outcome = Completed{.metrics = {{"macro_f1", 0.5 + number}}, .model_path = "/m"};
  entry.request.memory.live_peak = MiB(number);
  entry.request.final_plan = {.effective_batch = 32, .micro_batch = 4};
  entry.request.attributes = {{"rows", "[1,2.5]"}, {"text", "\"\xc3\xa4\""}};
  entry.request.memory_records = {{.stage = "Trial Success", .sequence = number}};
  entry.request.measurements = {{.step = 5, .epoch = 0.5, .metrics = {{"loss", 1.25}}}};
  return entry;
}

class OutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        ("outbox-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "outbox").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Outbox Open() {
    absl::StatusOr<Outbox> outbox = Outbox::Open(path_);
    EXPECT_TRUE(outbox.ok()) << outbox.status();
    return *std::move(outbox);
  }
  std::string Content() { return ReadFile(path_).value(); }
  void Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(OutboxTest, EntriesOutliveTheProcessInOrder) {
  {
    Outbox outbox = Open();
    EXPECT_TRUE(outbox.pending().empty());
    ASSERT_TRUE(outbox.Append(Entry(1)).ok());
    ASSERT_TRUE(outbox.Append(Entry(2)).ok());
  }
  EXPECT_THAT(Open().pending(), ::testing::ElementsAre(Entry(1), Entry(2)));
}

TEST_F(OutboxTest, EveryKindOfOutcomeComesBackEqual) {
  OutOfMemory oom;
  oom.kind = OomKind::kLatePeak;
  oom.requested = MiB(20);
  oom.message = "CUDA out of memory";
  const TrialOutcome outcomes[] = {
      Completed{.metrics = {{"a", 1.0}}, .model_path = "x"},
      StoppedByPruner{.pruner = "median", .step = 3, .metrics = {}}, oom,
      Failed{.failure_class = FailureClass::kBadModel, .message = "line\nbreak \"quoted\""},
      Cancelled{.reason = "by hand"}};
  Outbox outbox = Open();
  std::vector<OutboxEntry> expected;
  for (const TrialOutcome& outcome : outcomes) {
    OutboxEntry entry = Entry(static_cast<int>(expected.size()));
    entry.request.outcome = outcome;
    ASSERT_TRUE(outbox.Append(entry).ok());
    expected.push_back(entry);
  }
  EXPECT_EQ(Open().pending(), expected);
}

TEST_F(OutboxTest, NumbersAndTextThatJsonLacksDoNotLoseTheResult) {
  OutboxEntry entry = Entry(1);
  entry.request.measurements[0].metrics["loss"] = std::nan("");
  entry.request.outcome = Failed{.failure_class = FailureClass::kDiverged, .message = "\xff\xfe"};
  ASSERT_TRUE(Open().Append(entry).ok());
  const Outbox outbox = Open();
  ASSERT_EQ(outbox.pending().size(), 1u);
  EXPECT_TRUE(std::isnan(outbox.pending()[0].request.measurements[0].metrics.at("loss")));
  EXPECT_EQ(StateOf(outbox.pending()[0].request.outcome), TrialState::kFailed);
}

TEST_F(OutboxTest, AcknowledgedEntriesStayGone) {
  {
    Outbox outbox = Open();
    ASSERT_TRUE(outbox.Append(Entry(1)).ok());
    ASSERT_TRUE(outbox.Append(Entry(2)).ok());
    ASSERT_TRUE(outbox.Acknowledge("request-1").ok());
    ASSERT_TRUE(outbox.Acknowledge("unknown").ok());
    EXPECT_THAT(outbox.pending(), ::testing::ElementsAre(Entry(2)));
  }
  EXPECT_THAT(Open().pending(), ::testing::ElementsAre(Entry(2)));
}

TEST_F(OutboxTest, AnEmptyOutboxIsAnEmptyFile) {
  Outbox outbox = Open();
  ASSERT_TRUE(outbox.Append(Entry(1)).ok());
  ASSERT_TRUE(outbox.Acknowledge("request-1").ok());
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
  ASSERT_TRUE(outbox.Append(Entry(2)).ok());
  EXPECT_THAT(Open().pending(), ::testing::ElementsAre(Entry(2)));
}

TEST_F(OutboxTest, TheFileDoesNotGrowWithWhatIsAcknowledged) {
  Outbox outbox = Open();
  ASSERT_TRUE(outbox.Append(Entry(1000)).ok());  // never acknowledged, so never empty
  ASSERT_TRUE(outbox.Append(Entry(0)).ok());
  const size_t two_entries = Content().size();  // at most 64 dead records on top
  for (int i = 1; i < 150; ++i) {
    ASSERT_TRUE(outbox.Append(Entry(i)).ok());
    ASSERT_TRUE(outbox.Acknowledge("request-" + std::to_string(i)).ok());
  }
  EXPECT_LT(Content().size(), 50 * two_entries);
  EXPECT_THAT(Open().pending(), ::testing::ElementsAre(Entry(1000), Entry(0)));
}

// A crash at any byte of the last append leaves what was there before, and a usable file.
TEST_F(OutboxTest, ATornLastRecordIsDroppedWhereverItWasTorn) {
  {
    Outbox outbox = Open();
    ASSERT_TRUE(outbox.Append(Entry(1)).ok());
  }
  const size_t first_size = Content().size();
  {
    Outbox outbox = Open();
    ASSERT_TRUE(outbox.Append(Entry(2)).ok());
  }
  const std::string whole = Content();
  for (size_t size = first_size; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    Write(whole.substr(0, size));
    Outbox outbox = Open();
    ASSERT_THAT(outbox.pending(), ::testing::ElementsAre(Entry(1)));
    ASSERT_EQ(Content().size(), first_size);
    if (size % 32 != 0) continue;  // an append is a disk's fsync: not at every byte
    ASSERT_TRUE(outbox.Append(Entry(3)).ok());
    ASSERT_THAT(Open().pending(), ::testing::ElementsAre(Entry(1), Entry(3)));
  }
}

TEST_F(OutboxTest, ATornAcknowledgementBringsTheEntryBackRatherThanLosingIt) {
  {
    Outbox outbox = Open();
    ASSERT_TRUE(outbox.Append(Entry(1)).ok());
    ASSERT_TRUE(outbox.Append(Entry(2)).ok());
    ASSERT_TRUE(outbox.Acknowledge("request-1").ok());
  }
  Write(Content().substr(0, Content().size() - 3));
  EXPECT_THAT(Open().pending(), ::testing::ElementsAre(Entry(1), Entry(2)));
}

TEST_F(OutboxTest, DamageBeforeTheLastRecordIsSetAside) {
  {
    Outbox outbox = Open();
    for (int i = 1; i <= 3; ++i) {
      ASSERT_TRUE(outbox.Append(Entry(i)).ok());
    }
  }
  std::string content = Content();
  const size_t second = content.find('\n') + 1;
  content[second + 40] ^= 1;
  Write(content);
  for (int round = 0; round < 2; ++round) {
    const Outbox outbox = Open();
    EXPECT_THAT(outbox.pending(), ::testing::ElementsAre(Entry(1), Entry(3)));
    ASSERT_EQ(outbox.set_aside().size(), 1u);
    const std::string kept =
        ReadFile(outbox.set_aside_folder() + "/" + outbox.set_aside()[0]).value();
    EXPECT_THAT(content, HasSubstr(kept));
  }
}

TEST_F(OutboxTest, DamageThatCannotBeSetAsideIsNamed) {
  ASSERT_TRUE(Open().Append(Entry(1)).ok());
  Write("damaged\n" + Content());
  std::ofstream(folder_ / "set_aside") << "a file where the folder should be";
  const absl::Status status = Outbox::Open(path_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ":1"));
}

TEST_F(OutboxTest, WhatTheMachineLacksAtTheMomentMayPass) {
  for (int times = 0; times < 2; ++times) {  // without the file, and with it
    absl::Status opened;
    {
      const FewDescriptors none;
      opened = Outbox::Open(path_).status();
    }
    EXPECT_TRUE(absl::IsUnavailable(opened)) << opened;
    Open();
  }
}

TEST_F(OutboxTest, AFolderThatIsNotThereIsAnError) {
  const absl::Status status = Outbox::Open((folder_ / "missing" / "outbox").string()).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("missing/outbox"));
}

}  // namespace
}  // namespace hpo::agent
