#include "worker/agent/preflight/dry_run_document.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/preflight/emulated_gpus.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

DeviceProfile Gpu(int64_t multiprocessors, const std::string& capability = "8.6") {
  return {.kind = "cuda",
          .name = "NVIDIA GeForce RTX 3060 (emulated)",
          .total = GiB(12),
          .capability = capability,
          .multiprocessors = multiprocessors,
          .threads_per_multiprocessor = 1536};
}

std::string GpuText(const std::string& verdict, const std::string& least) {
  return absl::StrCat(R"({"gpu": "gpu-0", "verdict": ")", verdict,
                      R"(", "required_bytes": 9000000000, "least_bytes": )", least,
                      R"(, "margin_bytes": 500000000, "notes": ["a note", "another"]})");
}

DryRunEnd EndWith(const std::string& gpus) {
  return {.document = absl::StrCat(R"({"command": ["sh"], "gpus": [)", gpus, "]}"),
          .how = "exited with status 0",
          .took = absl::Seconds(8)};
}

TEST(ReportOf, IsTheLeastMemoryOfEachGpu) {
  const std::vector<DeviceProfile> gpus = {Gpu(82), Gpu(28)};
  const PreflightReport report = ReportOf(
      "p1", gpus, EndWith(GpuText("fits", "8000000000") + "," + GpuText("fits", "7800000000")));
  EXPECT_EQ(report.id, "p1");
  EXPECT_EQ(report.took, absl::Seconds(8));
  EXPECT_EQ(report.message, "");
  const std::vector<PreflightNeed> expected = {
      {"8.6", 82 * 1536, PreflightState::kMeasured, Bytes{8000000000}, Bytes{500000000}},
      {"8.6", 28 * 1536, PreflightState::kMeasured, Bytes{7800000000}, Bytes{500000000}}};
  EXPECT_EQ(report.needs, expected);
  EXPECT_EQ(DescribeReport(report, GiB(12)), "requires 7.45 GiB of 12.00 GiB, dry-run in 8 s");
}

TEST(ReportOf, MeasuresWhatDoesNotFitToo) {
  const PreflightReport report =
      ReportOf("p", {Gpu(28)}, EndWith(GpuText("does not fit", "20000000000")));
  EXPECT_EQ(report.needs.front().state, PreflightState::kMeasured);
  EXPECT_EQ(report.needs.front().required, Bytes{20000000000});
  EXPECT_EQ(DescribeReport(report, GiB(12)),
            "does not fit, requires 18.63 GiB of 12.00 GiB, dry-run in 8 s");
}

TEST(ReportOf, IsUncertainWhereValuesAreNotKnown) {
  for (const auto& [verdict, least, required] :
       {std::tuple{"unknown", "8000000000", int64_t{8000000000}},
        std::tuple{"fits", "null", int64_t{9000000000}}}) {
    SCOPED_TRACE(verdict);
    const std::vector<DeviceProfile> gpus = {Gpu(82), Gpu(28)};
    const PreflightReport report =
        ReportOf("p", gpus, EndWith(GpuText(verdict, least) + "," + GpuText(verdict, least)));
    ASSERT_THAT(report.needs, SizeIs(1));
    EXPECT_EQ(report.needs.front().state, PreflightState::kUncertain);
    EXPECT_EQ(report.needs.front().required, Bytes{required});
    EXPECT_EQ(report.message, "a note; another");
    EXPECT_THAT(DescribeReport(report, GiB(12)), HasSubstr("requires about"));
  }
}

TEST(ReportOf, SaysInOneLineWhyThereIsNone) {
  const std::pair<DryRunEnd, std::string> cases[] = {
      {{.complaint = "Traceback\n  line\nhpo memory dry-run: no torch\n\n"}, "no torch"},
      {{.complaint = "hpo memory dry-run: not done in 5 s; --timeout gives it longer"},
       "not done in 5 s; --preflight-timeout gives it longer"},
      {{.how = "was killed by SIGKILL"}, "hpo_dryrun was killed by SIGKILL"},
      {{.document = "{", .how = "x", .timed_out = true, .took = absl::Seconds(140)},
       "the dry run was not done after 2m20s"},
      {{.document = "[]"}, "expected the document of 1 GPUs, got expected an object with gpus"},
      {EndWith(""), "expected the document of 1 GPUs, got that of 0 GPUs"},
      {EndWith(R"({"verdict": 1})"),
       "expected the document of 1 GPUs, got [0]: gpus.verdict: expected a string, got the "
       "integer 1"},
  };
  for (const auto& [end, why] : cases) {
    const PreflightReport report = ReportOf("p", {Gpu(28)}, end);
    ASSERT_THAT(report.needs, SizeIs(1));
    EXPECT_EQ(report.needs.front().state, PreflightState::kFailed);
    EXPECT_EQ(report.needs.front().capability, "8.6");
    EXPECT_EQ(report.needs.front().required, Bytes{});
    EXPECT_EQ(report.message, why);
    EXPECT_EQ(DescribeReport(report, GiB(12)), "cannot be dry-run: " + why);
  }
}

TEST(GpusOfDryRun, AreThoseThatTheOwnOneAnswersFor) {
  DeviceProfile cpu = Gpu(10);
  cpu.kind = "cpu";
  const std::vector<DeviceProfile> gpus = GpusOfDryRun(
      Gpu(82), {Gpu(28), Gpu(82), Gpu(84), Gpu(28), Gpu(68), Gpu(0), Gpu(28, "8.0"), cpu});
  ASSERT_THAT(gpus, SizeIs(3));
  EXPECT_EQ(gpus[0].multiprocessors, 82);
  EXPECT_EQ(gpus[1].multiprocessors, 28);
  EXPECT_EQ(gpus[2].multiprocessors, 68);
  std::vector<DeviceProfile> many;
  for (int i = 1; i < 40; ++i) many.push_back(Gpu(i));
  EXPECT_THAT(GpusOfDryRun(Gpu(82), many), SizeIs(1 + kMostOthers));
}

TEST(DescribeEmulatedGpus, IsAFileOfTheEmulator) {
  EXPECT_EQ(DescribeEmulatedGpus({Gpu(28)}),
            "name = gpu-0\nproduct = NVIDIA GeForce RTX 3060\ncapability = 8.6\n"
            "multiprocessors = 28\nmemory = 12884901888B\n");
}

}  // namespace
}  // namespace hpo::agent
