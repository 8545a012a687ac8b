#include "common/device/processors.h"

#include <sched.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hpo {

int AvailableProcessors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  return ::sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : 1;
}

absl::StatusOr<int> TrainerThreads() {
  const char* const text = std::getenv("HPO_NUM_THREADS");
  if (text == nullptr) return AvailableProcessors();
  int threads = 0;
  if (absl::SimpleAtoi(text, &threads) && threads > 0) return threads;
  return absl::InvalidArgumentError(
      absl::StrCat("HPO_NUM_THREADS: expected a positive number, got '", text, "'"));
}

}  // namespace hpo
