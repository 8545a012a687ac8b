// Required memory over two parameters of a search space, and where the limits of GPUs lie, also of
// GPUs that nobody has. What no replay knows, earlier trials and dry runs tell (learned_need.h).
//
// Each configuration is replayed at its word, and planned for each GPU that it does not fit: some
// milliseconds for each replay that `decider` does not remember, on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "memory/plan/fit_decision.h"

namespace hpo::memory {

struct NeedGridOptions {
  // Two parameters of the space; empty: those whose values change the required memory most.
  std::string x = {};
  std::string y = {};
  // The others; those left out have their default, else a value from the middle.
  ParamMap params = {};
  std::vector<Bytes> capacities;
  size_t points = 16;  // values of one parameter (ThinnedValues)
};

// Of a configuration on a GPU.
enum class CellVerdict {
  kFits,     // as it is written
  kPlanned,  // by the plan of the study's memory policy
  kDoesNotFit,
  kNotKnown,  // it would be tried
};

struct NeedGridGpu {
  Bytes capacity;
  Bytes usable;
  // Of each configuration, as NeedGrid::needed: the micro-batch that the study's memory policy
  // plans; 0: none fits, or nothing is known.
  std::vector<int64_t> micro_batches = {};
  std::vector<CellVerdict> verdicts = {};
  bool operator==(const NeedGridGpu&) const = default;
};

struct NeedGrid {
  std::string x;
  std::string y;
  std::vector<ParamValue> x_values;  // numbers ascending, other choices in their own order
  std::vector<ParamValue> y_values;
  // Of each configuration at its word, with its margin: for each y from the first, all x. 0: not
  // known. More than is usable on each GPU that it does not fit as written, and no more on each
  // that it fits so: learned needs differ with the limit, and one that agrees with all is taken.
  std::vector<Bytes> needed;
  std::vector<NeedGridGpu> gpus;  // as asked
  ParamMap params;                // the other parameters, with conditions as the first x and y say
  bool is_estimated = false;      // by replays; false: by what other trials used
};

// `decider` decides for `study`, by its policy.
//   InvalidArgument     no capacity, a name that is no parameter of the space, the same one twice;
//                       no configuration can be read as one of training: names why
//   FailedPrecondition  the space has fewer than two parameters of several values; nothing is known
//                       of the memory of any of these configurations
absl::StatusOr<NeedGrid> NeedGridOf(const StudySpec& study, const FitDecider& decider,
                                    const NeedGridOptions& options);

}  // namespace hpo::memory
