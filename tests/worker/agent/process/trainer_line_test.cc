#include "worker/agent/process/trainer_line.h"

#include <variant>

#include "common/base/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using testing::HasSubstr;

TEST(TrainerLine, LongTextsOfAFailureAreShortenedAndNotRefused) {
  const auto message = ReadTrainerLine(
      R"({"type":"outcome","outcome":{"kind":"failed","class":"INTERNAL","message":"Traceback )" +
      std::string(4 << 20, 'x') + R"( ValueError: no"}})");
  ASSERT_TRUE(message.ok()) << message.status();
  const auto& failed = std::get<Failed>(*std::get<OutcomeMessage>(*message).outcome);
  EXPECT_LE(failed.message.size(), static_cast<size_t>(kErrorTextLimit.most));
  EXPECT_THAT(failed.message, testing::StartsWith("Traceback x"));
  EXPECT_THAT(failed.message, testing::EndsWith("x ValueError: no"));
}

TEST(TrainerLine, WhatTheServerWouldRefuseIsRefusedHere) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"type":"measurement","step":-1,"metrics":{}})",
       "step: expected 0 to 9007199254740992, got -1"},
      {R"({"type":"measurement","step":1,"metrics":{")" + std::string(201, 'm') + R"(":1.0}})",
       "expected at most 200 bytes, got 201"},
      {R"({"type":"outcome","memory":{"live_peak_bytes":9223372036854775807},"outcome":)"
       R"({"kind":"completed","metrics":{}}})",
       "memory: live_peak_bytes: expected 0 to 9007199254740992, got 9223372036854775807"},
      {R"({"type":"outcome","outcome":{"kind":"stopped_by_pruner","step":-3}})",
       "outcome: stopped_by_pruner.step: expected 0 to 9007199254740992, got -3"},
  };
  for (const auto& [line, message] : cases) {
    const absl::Status status = ReadTrainerLine(line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace hpo::agent
