#include "common/device/processors.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr const char* kVariable = "HPO_NUM_THREADS";

class TrainerThreadsTest : public testing::Test {
 protected:
  TrainerThreadsTest() {
    if (const char* const text = std::getenv(kVariable)) before_ = text;
    unsetenv(kVariable);
  }
  ~TrainerThreadsTest() override {
    before_.has_value() ? setenv(kVariable, before_->c_str(), 1) : unsetenv(kVariable);
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(TrainerThreadsTest, AreTheProcessorsThatMayBeUsed) {
  EXPECT_GE(AvailableProcessors(), 1);
  EXPECT_EQ(*TrainerThreads(), AvailableProcessors());
}

TEST_F(TrainerThreadsTest, AreThoseOfTheEnvironmentWhereItSaysSo) {
  setenv(kVariable, "7", 1);
  EXPECT_EQ(*TrainerThreads(), 7);
}

TEST_F(TrainerThreadsTest, NonsenseInTheEnvironmentIsToldWithItsName) {
  for (const char* const text : {"", "0", "-3", "many", "7x", "99999999999"}) {
    setenv(kVariable, text, 1);
    const auto threads = TrainerThreads();
    EXPECT_EQ(threads.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(threads.status().message().find(kVariable), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace hpo
