#include "cli/commands/exchange/event_file.h"

#include <cmath>

#include "common/files/read_file.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"

namespace hpo::cli {
namespace {

// The trial of scripts/reference/event_file.py.
TrialView View() {
  TrialView view;
  Trial& trial = view.trial;
  trial.id = {.study = "criteria", .number = TrialNumber{12}};
  trial.state = TrialState::kCompleted;
  trial.params = {{"flag", true},
                  {"model.name", std::string("bert")},
                  {"train.batch_size", int64_t{16}},
                  {"train.lr", 3e-5}};
  trial.started = absl::FromUnixSeconds(1'700'000'005);
  trial.ended = trial.started + absl::Minutes(1);
  trial.outcome = Completed{.metrics = {{"macro_f1", 0.5}}};
  view.measurements = {{.step = 10, .metrics = {{"loss", 1.5}, {"macro_f1", 0.25}}},
                       {.step = 20, .metrics = {{"loss", std::nan("")}, {"macro_f1", 0.5}}}};
  return view;
}

TEST(EventFile, IsByteForByteWhatTensorBoardWrites) {
  const auto golden = ReadFile(SourcePath("tests/golden/event_file.tfevents"));
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(EventFile(View()), *golden);
}

TEST(EventFile, AnOpenTrialEndsAfterItsMeasurements) {
  TrialView open = View();
  open.trial.outcome.reset();
  const std::string file = EventFile(open);
  EXPECT_EQ(EventFile(View()).substr(0, file.size()), file) << "a later export only appends";
  EXPECT_EQ(file.find("session_end_info"), std::string::npos);
  TrialView failed = View();
  failed.trial.state = TrialState::kFailed;
  failed.trial.outcome = Failed{.message = "no"};
  EXPECT_EQ(EventFile(failed).find("result/"), std::string::npos);
  EXPECT_NE(EventFile(failed).find("session_end_info"), std::string::npos);
}

// RFC 3720, B.4: 32 bytes of zeros, of ones, ascending; before the mask.
TEST(EventFile, TheChecksumIsCastagnolis) {
  const auto unmasked = [](const std::string& data) {
    const uint32_t rotated = MaskedCrc32c(data) - 0xa282ead8;
    return (rotated >> 17) | (rotated << 15);
  };
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(unmasked(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(unmasked(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(unmasked(ascending), 0x46dd794eU);
}

TEST(EventFile, ARecordIsItsLengthItsDataAndTwoChecksums) {
  const std::string record = TfRecord("abc");
  ASSERT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(TfRecord("").size(), 16u);
}

}  // namespace
}  // namespace hpo::cli
