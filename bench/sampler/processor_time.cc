#include "bench/sampler/processor_time.h"

#include <time.h>

#include "common/base/status.h"

namespace hpo {

double ProcessorSeconds() {
  timespec now{};
  HPO_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace hpo
