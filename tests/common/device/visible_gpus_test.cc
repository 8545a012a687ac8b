#include "common/device/visible_gpus.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<GpuState> GpusOf(const nlohmann::json& described) {
  std::vector<GpuState> gpus;
  for (const nlohmann::json& one : described) {
    GpuState& gpu = gpus.emplace_back();
    gpu.index = one.at("index");
    gpu.uuid = one.at("uuid");
    gpu.parent_uuid = one.value("parent_uuid", "");
    gpu.name = "NVIDIA H200";
  }
  return gpus;
}

std::vector<std::string> Uuids(const VisibleGpus& visible) {
  std::vector<std::string> uuids;
  for (const GpuState& gpu : visible.gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

void CheckCases(const std::string& gpus, const std::string& cases) {
  const nlohmann::json golden = ReadGolden("visible_gpus.json");
  const std::vector<GpuState> there = GpusOf(golden.at(gpus));
  for (const nlohmann::json& one : golden.at(cases)) {
    SCOPED_TRACE(one.dump());
    VisibilityVariables variables;
    if (!one.at("listed").is_null()) variables.visible = one.at("listed");
    const VisibleGpus visible = SelectVisible(there, variables);
    EXPECT_EQ(Uuids(visible), one.at("visible").get<std::vector<std::string>>());
    EXPECT_EQ(!visible.warning.empty(), one.value("warns", false)) << visible.warning;
  }
}

TEST(SelectVisible, TakesTheListAsCudaDoes) { CheckCases("gpus", "cases"); }

TEST(SelectVisible, KnowsMigDevices) { CheckCases("mig_gpus", "mig_cases"); }

TEST(SelectVisible, SaysWhichEntryEndsTheList) {
  const std::vector<GpuState> gpus = GpusOf(ReadGolden("visible_gpus.json").at("gpus"));
  const VisibleGpus visible = SelectVisible(gpus, {.visible = "1,7,0"});
  EXPECT_THAT(visible.warning, HasSubstr("CUDA_VISIBLE_DEVICES=1,7,0: '7' names no GPU"));
  EXPECT_THAT(visible.warning, HasSubstr("GPU-b000-4"));
}

TEST(SelectVisible, SaysThatNumbersMayMeanOthersToCudaWhereGpusDiffer) {
  std::vector<GpuState> gpus = GpusOf(ReadGolden("visible_gpus.json").at("gpus"));
  gpus[2].name = "NVIDIA T4";
  EXPECT_THAT(SelectVisible(gpus, {.visible = "1"}).warning, HasSubstr("CUDA_DEVICE_ORDER"));
  EXPECT_THAT(SelectVisible(gpus, {.visible = "1", .order = "FASTEST_FIRST"}).warning,
              HasSubstr("CUDA_DEVICE_ORDER"));
  EXPECT_THAT(SelectVisible(gpus, {.visible = "1", .order = "PCI_BUS_ID"}).warning, IsEmpty());
  EXPECT_THAT(SelectVisible(gpus, {.visible = "GPU-7c42"}).warning, IsEmpty());
  EXPECT_THAT(SelectVisible(gpus, {}).warning, IsEmpty());
}

}  // namespace
}  // namespace hpo
