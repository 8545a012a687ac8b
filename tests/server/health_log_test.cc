#include "server/health_log.h"

#include "gmock/gmock.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(HealthLog, SaysWhenItBeginsOnceAMinuteAndWhenItIsOver) {
  HealthLog log;
  int64_t lines = 0;
  EXPECT_EQ(log.Look("", absl::Seconds(1)), std::nullopt);
  for (int64_t second = 10; second < 200; ++second) {
    const auto line = log.Look("the disk is full", absl::Seconds(second));
    if (!line) continue;
    ++lines;
    EXPECT_THAT(*line, HasSubstr("the disk is full"));
    EXPECT_EQ(line->find("since") != std::string::npos, second > 10);
  }
  EXPECT_EQ(lines, 4) << "at 10, 70, 130 and 190 seconds";
  EXPECT_THAT(log.Look("", absl::Seconds(200)),
              Optional(AllOf(HasSubstr("works again"), HasSubstr("3m10s"))));
  EXPECT_EQ(log.Look("", absl::Seconds(201)), std::nullopt);
  EXPECT_TRUE(log.Look("again", absl::Seconds(202)).has_value());
}

}  // namespace
}  // namespace hpo::server
