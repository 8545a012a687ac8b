// Whether a worker dry-runs configurations before it runs them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/worker_facts.h"

namespace hpo::agent {

// What the worker's options say: --preflight, --no-preflight or neither.
enum class PreflightWish { kIfAsked, kAlways, kNever };

struct DryRunNeeds {
  bool is_plain_program = false;  // WorkerOptions::IsPlainProgram
  bool plans = false;             // {micro_batch} is in its command
  DeviceProfile device;
  int64_t gpus = 1;  // that a trial takes
};

// Why no dry run can be made, as far as options and device say. Pure.
//   FailedPrecondition  names what is lacking
absl::Status CheckNeeds(const DryRunNeeds& needs);

// Whether the package hpo_dryrun and its libraries are here, and can emulate `device`: runs it
// once, for at most kCheckTime. `program`: DryRunCommand. `folder` exists.
//   FailedPrecondition  the line that it has printed
absl::Status CheckDryRunPackage(const std::vector<std::string>& program,
                                const DeviceProfile& device, const std::string& folder);
constexpr absl::Duration kCheckTime = absl::Seconds(60);

}  // namespace hpo::agent
