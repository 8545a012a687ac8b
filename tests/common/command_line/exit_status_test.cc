#include "common/command_line/exit_status.h"

#include <gtest/gtest.h>

namespace hpo {
namespace {

TEST(ExitStatus, SaysWhatKindOfFailure) {
  const std::pair<absl::Status, int> cases[] = {
      {absl::OkStatus(), 0},
      {absl::InternalError(""), 1},
      {absl::UnimplementedError(""), 1},
      {absl::InvalidArgumentError(""), 2},
      {absl::OutOfRangeError(""), 2},
      {absl::NotFoundError(""), 3},
      {absl::AlreadyExistsError(""), 4},
      {absl::FailedPreconditionError(""), 4},
      {absl::AbortedError(""), 4},
      {absl::UnavailableError(""), 5},
      {absl::DeadlineExceededError(""), 5},
  };
  for (const auto& [status, exit_status] : cases) {
    EXPECT_EQ(ExitStatusOf(status), exit_status) << status;
  }
}

}  // namespace
}  // namespace hpo
