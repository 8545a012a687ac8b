#include "worker/agent/preflight/dry_run_ability.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

DryRunNeeds Needs() {
  return {.is_plain_program = true,
          .device = {.kind = "cuda",
                     .name = "NVIDIA L4",
                     .total = GiB(22),
                     .capability = "8.9",
                     .multiprocessors = 58,
                     .threads_per_multiprocessor = 1536}};
}

TEST(CheckNeeds, NamesWhatIsLacking) {
  EXPECT_TRUE(CheckNeeds(Needs()).ok());
  const auto lacks = [](auto change) {
    DryRunNeeds needs = Needs();
    change(needs);
    const absl::Status status = CheckNeeds(needs);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    return std::string(status.message());
  };
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.device.kind = "cpu"; }), HasSubstr("uses the CPU"));
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.is_plain_program = false; }),
              HasSubstr("programs of your own"));
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.plans = true; }), HasSubstr("{micro_batch}"));
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.gpus = 2; }), HasSubstr("trials of this worker take 2"));
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.device.capability = ""; }), HasSubstr("NVIDIA L4"));
  EXPECT_THAT(lacks([](DryRunNeeds& n) { n.device.multiprocessors = 0; }), HasSubstr("NVIDIA L4"));
}

// `script` is run as hpo_dryrun.
absl::Status Check(const std::string& script) {
  const TemporaryFolder folder;
  return CheckDryRunPackage({"sh", "-c", script, "hpo_dryrun"}, Needs().device, folder.path());
}

TEST(CheckDryRunPackage, RunsItWithThisGpu) {
  EXPECT_TRUE(Check("[ \"$*\" = '--gpu list' ] && grep -q 'capability = 8.9' $HPO_EMULATED_GPUS && "
                    "echo list")
                  .ok());
}

TEST(CheckDryRunPackage, SaysWhatItSaid) {
  EXPECT_EQ(Check("echo 'hpo memory dry-run: capability 9.9 is not known' >&2; exit 2").message(),
            "capability 9.9 is not known");
  EXPECT_EQ(Check("exit 3").message(), "hpo_dryrun exited with status 3");
  const TemporaryFolder folder;
  EXPECT_THAT(
      std::string(CheckDryRunPackage({"no-such-python3"}, Needs().device, folder.path()).message()),
      HasSubstr("no-such-python3: not found"));
}

}  // namespace
}  // namespace hpo::agent
