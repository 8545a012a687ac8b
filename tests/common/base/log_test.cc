#include "common/base/log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

// Puts spdlog's own logger back after each test.
class LogTest : public testing::Test {
 protected:
  ~LogTest() override { spdlog::set_default_logger(before_); }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LogTest, WritesTimeLevelAndMessage) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLog("info", /*json=*/false).ok());
  spdlog::info("trial {} started", 12);
  spdlog::debug("not shown");
  spdlog::warn("low memory");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("....-..-..T..:..:..\\....Z info trial 12 started\n"
                                    "....-..-..T..:..:..\\....Z warn low memory\n"));
}

TEST_F(LogTest, AMessageIsOneLine) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLog("info", /*json=*/false).ok());
  spdlog::info("trial #1: {}", "lost\n2026-11-23T00:00:00.000Z info forged\r\x1b[2J\tand so on");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::EndsWith("info trial #1: lost\\n2026-11-23T00:00:00.000Z info "
                                "forged\\x0d\\x1b[2J\tand so on\n"));
}

TEST_F(LogTest, JsonEscapesWhatAMessageHolds) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLog("debug", /*json=*/true).ok());
  spdlog::debug("a \"quote\"\nand a bad byte \xff");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "debug");
  EXPECT_EQ(json["message"], "a \"quote\"\nand a bad byte \xEF\xBF\xBD");
  EXPECT_EQ(json["time"].get<std::string>().size(), 24u);
}

TEST_F(LogTest, RefusesAnUnknownLevel) {
  EXPECT_EQ(InitLog("loud", false).message(),
            "log level: expected trace, debug, info, warn, error or off, got 'loud'");
}

}  // namespace
}  // namespace hpo
