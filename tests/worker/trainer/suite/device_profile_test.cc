#include "worker/trainer/suite/device_profile.h"

#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo::trainer {
namespace {

GpuState Card(Bytes used, std::vector<GpuProcess> processes = {}) {
  GpuState card;
  card.uuid = "GPU-a";
  card.used = used;
  card.processes = std::move(processes);
  return card;
}

TEST(BaseBytes, IsTheProcessesOwnUseLessWhatItsAllocatorHolds) {
  const GpuState before = Card(GiB(3), {{.pid = 1, .used = GiB(3)}});
  const GpuState after = Card(GiB(9), {{.pid = 1, .used = GiB(8)}, {.pid = 42, .used = GiB(1)}});
  EXPECT_EQ(BaseBytes(before, after, 42, MiB(500)), GiB(1) - MiB(500));
}

TEST(BaseBytes, IsTheRiseWhereTheDriverDoesNotListUs) {
  const GpuState before = Card(GiB(3));
  EXPECT_EQ(BaseBytes(before, Card(GiB(4)), 42, MiB(100)), GiB(1) - MiB(100));
  // Listed, but its bytes are not told.
  EXPECT_EQ(BaseBytes(before, Card(GiB(4), {{.pid = 42}}), 42, MiB(100)), GiB(1) - MiB(100));
  // Somebody else has freed more than we took.
  EXPECT_EQ(BaseBytes(before, Card(GiB(1)), 42, MiB(100)), Bytes{});
}

TEST(FindCard, ByItsUuid) {
  const std::vector<GpuState> cards = {Card(GiB(1))};
  EXPECT_TRUE(FindCard(cards, "GPU-a").has_value());
  EXPECT_FALSE(FindCard(cards, "GPU-b").has_value());
  std::vector<GpuState> divided = cards;
  divided.front().uuid = "MIG-a";
  EXPECT_TRUE(FindCard(divided, "GPU-a").has_value()) << "CUDA does not say that it is one";
}

TEST(ProfileDevice, OfACpuIsItsKernelsAndNoBytes) {
  const Bytes live = TestDevice().memory->Read().live;
  const auto profile = ProfileDevice("cpu", "2.11.0");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->kind, "cpu");
  EXPECT_EQ(profile->source, "measured");
  EXPECT_EQ(profile->torch_build, "2.11.0");
  EXPECT_EQ(profile->base, Bytes{});
  EXPECT_EQ(profile->workspace, live) << "nothing stays";
  EXPECT_EQ(profile->attention, "math") << "with dropout it is written out";
  EXPECT_EQ(profile->threads, 1);
  EXPECT_FALSE(profile->capability.empty());
  EXPECT_GT(profile->total, GiB(1));
}

TEST(ProfileDevice, NamesADeviceThatIsNotThere) {
  EXPECT_FALSE(ProfileDevice("cuda:977", "2.11.0").ok());
}

}  // namespace
}  // namespace hpo::trainer
