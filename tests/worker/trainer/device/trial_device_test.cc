#include "worker/trainer/device/trial_device.h"

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

TrainerJob Job(const std::string& device) {
  TrainerJob job;
  job.device = device;
  job.task.limit = GiB(2);
  job.task.predicted = GiB(1);
  job.task.plan = {.effective_batch = 32, .micro_batch = 8};
  return job;
}

TEST(OutcomeWithoutDevice, AFullCardIsOthersDoing) {
  for (const bool card : {true, false}) {
    const OutcomeMessage message =
        OutcomeWithoutDevice(Job(card ? "cuda:0" : "cpu"), absl::ResourceExhaustedError("no room"));
    ASSERT_TRUE(message.outcome.has_value());
    const auto* oom = std::get_if<OutOfMemory>(&*message.outcome);
    ASSERT_NE(oom, nullptr);
    EXPECT_EQ(oom->kind, card ? OomKind::kDirtyDevice : OomKind::kHost);
    EXPECT_FALSE(oom->predicted);
    EXPECT_EQ(oom->message, "no room");
    EXPECT_EQ(oom->limit, GiB(2));
    EXPECT_EQ(oom->needed, GiB(1));
    EXPECT_EQ(oom->plan.micro_batch, 8);
    EXPECT_EQ(message.memory.num_ooms, 1);
    EXPECT_EQ(message.final_plan, oom->plan);
    EXPECT_FALSE(message.clean);
  }
}

TEST(OutcomeWithoutDevice, ALostCardIsTriedAgainAndAMissingOneIsNot) {
  const std::pair<absl::Status, FailureClass> cases[] = {
      {absl::UnavailableError("sticky"), FailureClass::kDeviceLost},
      {absl::FailedPreconditionError("no driver"), FailureClass::kBadConfiguration},
      {absl::InvalidArgumentError("no such device"), FailureClass::kBadConfiguration}};
  for (const auto& [reason, failure_class] : cases) {
    const OutcomeMessage message = OutcomeWithoutDevice(Job("cuda:0"), reason);
    ASSERT_TRUE(message.outcome.has_value());
    EXPECT_EQ(std::get<Failed>(*message.outcome),
              (Failed{.failure_class = failure_class, .message = std::string(reason.message())}));
    EXPECT_FALSE(message.clean);
  }
}

}  // namespace
}  // namespace hpo::trainer
