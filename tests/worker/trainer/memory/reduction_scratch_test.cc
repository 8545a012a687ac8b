// What torch's sums take on a card, against memory/ops/reduction_scratch. Needs a card,
// which may be emulated: HPO_TEST_DEVICE=cuda:0.
#include "memory/ops/reduction_scratch.h"

#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "memory/need/memory_estimate.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "tests/worker/trainer/trace_recorder.h"

namespace hpo::trainer {
namespace {

std::vector<int64_t> AllocatedBytes(const std::vector<AllocatorEvent>& events) {
  std::vector<int64_t> bytes;
  for (const AllocatorEvent& event : events) {
    if (event.kind == '+') bytes.push_back(event.bytes);
  }
  return bytes;
}

void ExpectScratchOf(const memory::Reduction& reduction, torch::ScalarType type) {
  SCOPED_TRACE(absl::StrCat(reduction.rows, " x ", reduction.columns, ", over ",
                            reduction.over_rows ? "rows" : "columns", ", ", reduction.element_size,
                            " bytes"));
  const torch::Tensor matrix = at::empty({reduction.rows, reduction.columns},
                                         torch::TensorOptions(type).device(TestDevice().device));
  TraceRecorder recorder(TestDeviceName());
  at::sum(matrix, reduction.over_rows ? 0 : 1);
  const std::vector<int64_t> taken = AllocatedBytes(recorder.Take());

  const memory::ReductionScratch scratch =
      memory::ReductionScratchOf(reduction, memory::TraitsOf(TestDevice().profile));
  const int64_t results = reduction.over_rows ? reduction.columns : reduction.rows;
  std::vector<int64_t> expected = {results * reduction.element_size};
  if (scratch.output_sums > 0) expected.push_back(scratch.output_sums);
  for (int64_t piece = 0; piece < scratch.pieces && scratch.partial_sums > 0; ++piece) {
    expected.push_back(scratch.partial_sums);
    expected.push_back(scratch.semaphores);
  }
  EXPECT_EQ(taken, expected);
}

TEST(ReductionScratch, IsWhatTorchTakesOnThisCard) {
  if (TestDevice().device.is_cpu()) GTEST_SKIP() << "needs a card: HPO_TEST_DEVICE=cuda:0";
  for (const int64_t rows : {1, 7, 64, 128, 255, 256, 1000, 1024, 4096, 10000, 65536, 100000}) {
    for (const int64_t columns : {1, 2, 3, 5, 30, 33, 64, 100, 128, 768, 1000, 1024, 3072, 30522}) {
      if (rows * columns > int64_t{1} << 31) continue;
      for (const bool over_rows : {true, false}) {
        ExpectScratchOf({.rows = rows, .columns = columns, .over_rows = over_rows},
                        torch::kFloat32);
        ExpectScratchOf(
            {.rows = rows, .columns = columns, .over_rows = over_rows, .element_size = 2},
            torch::kBFloat16);
      }
    }
  }
}

// Larger than 32 bits can index.
TEST(ReductionScratch, IsWhatTorchTakesForMatricesThatItCuts) {
  if (TestDevice().device.is_cpu()) GTEST_SKIP() << "needs a card: HPO_TEST_DEVICE=cuda:0";
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(262144, 3072), {70000, 30522}}) {
    ExpectScratchOf({.rows = rows, .columns = columns}, torch::kFloat32);
    ExpectScratchOf({.rows = rows, .columns = columns, .element_size = 2}, torch::kFloat16);
  }
}

TEST(ReductionScratch, IsNothingOnACpu) {
  EXPECT_EQ(
      memory::ReductionScratchOf({.rows = 100000, .columns = 768}, memory::KernelTraits::Cpu()),
      memory::ReductionScratch());
}

}  // namespace
}  // namespace hpo::trainer
