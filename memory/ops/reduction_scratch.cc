// Tested by tests/worker/trainer/memory/reduction_scratch_test.cc.
#include "memory/ops/reduction_scratch.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "memory/allocator/divide_up.h"

namespace hpo::memory {
namespace {

constexpr int64_t kSumBytes = 4;
constexpr int64_t kSemaphoreBytes = 4;
constexpr int64_t kWarp = 32;
constexpr int64_t kThreadsOfABlock = 512;
// Elements that a thread sums: so few at most before blocks share a result, so many at least after.
constexpr int64_t kMostElementsOfAThread = 256;
constexpr int64_t kLeastElementsOfAThread = 16;
constexpr int64_t kWidestLoad = 4;  // elements
constexpr int64_t kLeastElementsForWideLoads = 128;
constexpr int64_t kMostBytesAtOnce = std::numeric_limits<int32_t>::max();

int64_t PowerOf2Within(int64_t value, int64_t most) {
  return std::min(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value))));
}

// How the threads of a block lie over the matrix, and how many blocks share a result.
struct Launch {
  int64_t width = 1;   // threads along the dimension whose elements are neighbours
  int64_t height = 1;  // along the other
  int64_t load = 1;    // results that a thread makes at once
  int64_t grid = 1;    // blocks over the results
  int64_t blocks_of_a_result = 1;
};

Launch LaunchOf(const Reduction& reduction, const KernelTraits& traits) {
  const int64_t results = reduction.over_rows ? reduction.columns : reduction.rows;
  const int64_t elements = reduction.over_rows ? reduction.rows : reduction.columns;
  Launch launch;
  int64_t along = reduction.columns;
  if (reduction.over_rows) {
    launch.load = kWidestLoad;
    while (reduction.columns % launch.load != 0) launch.load /= 2;
    along /= launch.load;
  } else if (along >= kLeastElementsForWideLoads) {
    along /= kWidestLoad;
  }
  const int64_t threads = kThreadsOfABlock / launch.load;
  const int64_t along_threads = PowerOf2Within(along, threads);
  const int64_t across_threads = PowerOf2Within(reduction.rows, threads);
  launch.width = std::min(along_threads, kWarp);
  launch.height = std::min(across_threads, threads / launch.width);
  launch.width = std::min(along_threads, threads / launch.height);

  int64_t threads_of_a_result = reduction.over_rows ? 1 : launch.width;
  int64_t results_of_a_block = reduction.over_rows ? launch.width : 1;
  const auto elements_of_a_thread = [&] { return DivideUp(elements, threads_of_a_result); };
  const bool rows_share = elements_of_a_thread() >=
                          std::min(launch.height * kLeastElementsOfAThread, kMostElementsOfAThread);
  (rows_share ? threads_of_a_result : results_of_a_block) *= launch.height;

  launch.grid = DivideUp(results / launch.load, results_of_a_block);
  const int64_t blocks_at_once =
      traits.multiprocessors * (traits.threads_per_multiprocessor / (launch.width * launch.height));
  if (!rows_share || elements_of_a_thread() < kMostElementsOfAThread ||
      launch.grid > blocks_at_once) {
    return launch;
  }
  launch.blocks_of_a_result =
      std::max(std::min(DivideUp(blocks_at_once, launch.grid),
                        DivideUp(elements_of_a_thread(), kLeastElementsOfAThread)),
               DivideUp(elements_of_a_thread(), kMostElementsOfAThread));
  return launch;
}

}  // namespace

ReductionScratch ReductionScratchOf(const Reduction& reduction, const KernelTraits& traits) {
  ReductionScratch scratch;
  if (traits.cpu) return scratch;
  // Indices have 32 bits: a larger matrix is halved until it is within.
  Reduction piece = reduction;
  while (piece.rows > 1 && piece.rows * piece.columns * piece.element_size > kMostBytesAtOnce) {
    piece.rows = (piece.rows + 1) / 2;
    scratch.pieces *= 2;
  }
  const int64_t results = piece.over_rows ? piece.columns : piece.rows;
  if (scratch.pieces > 1 && reduction.element_size < kSumBytes) {
    scratch.output_sums = kSumBytes * (reduction.over_rows ? reduction.columns : reduction.rows);
  }
  const Launch launch = LaunchOf(piece, traits);
  if (launch.blocks_of_a_result == 1) return scratch;
  scratch.partial_sums = kSumBytes * results * launch.blocks_of_a_result;
  if (piece.over_rows) scratch.partial_sums *= launch.width * launch.load;
  scratch.semaphores = kSemaphoreBytes * launch.grid;
  return scratch;
}

Bytes NormsOfChunks(int64_t tensors, int64_t most_elements) {
  constexpr int64_t kChunk = 65536;  // elements
  return Bytes{kSumBytes * tensors * DivideUp(most_elements, kChunk)};
}

}  // namespace hpo::memory
