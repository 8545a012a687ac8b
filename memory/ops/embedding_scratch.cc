#include "memory/ops/embedding_scratch.h"

#include <algorithm>

#include "memory/allocator/divide_up.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

constexpr int64_t kUnsortedIndices = 3072;
constexpr int64_t kRowsOfAPart = 10;
// With fewer rows than this for each multiprocessor, and as many indices for each row, blocks of
// threads add to the result at once: bounds of parts are kept in place of sums.
constexpr int64_t kRowsOfAMultiprocessor = 4;
constexpr int64_t kIndicesOfARow = 30;
// cub on compute capability 8.0; a few KiB more or less on others.
constexpr int64_t kUnit = 256;
constexpr int64_t kSortFixed = 16895;
constexpr int64_t kSortTile = 3840;
constexpr int64_t kSortBytesOfATile = 1024;
constexpr int64_t kScanFixed = 1023;
constexpr int64_t kUniqueStep = 28672;
constexpr int64_t kScanStep = 14336;

}  // namespace

bool SumsWithoutSorting(int64_t num_indices, const KernelTraits& traits) {
  return traits.cpu || num_indices <= kUnsortedIndices;
}

EmbeddingScratch EmbeddingScratchOf(int64_t num_indices, int64_t rows, int64_t width,
                                    const KernelTraits& traits) {
  const int64_t segments = std::min(num_indices, rows);
  const int64_t parts = num_indices / kRowsOfAPart + segments;
  const bool adds_at_once = rows < kRowsOfAMultiprocessor * traits.multiprocessors &&
                            num_indices / rows >= kIndicesOfARow;
  const int64_t indices = kIndexBytes * num_indices;
  return {.indices = indices,
          .sort = kSortFixed + 2 * DivideUp(indices, kUnit) * kUnit +
                  kSortBytesOfATile * DivideUp(num_indices, kSortTile),
          .unique = kScanFixed + kUnit * DivideUp(num_indices, kUniqueStep),
          .segments = kIndexBytes * segments,
          .scan = kScanFixed + kUnit * DivideUp(segments, kScanStep),
          .parts = kIndexBytes * parts,
          .sums = adds_at_once ? kIndexBytes * parts : kFloatBytes * parts * width};
}

}  // namespace hpo::memory
