#include "worker/trainer/training/oom_outcome.h"

#include "absl/strings/str_cat.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/memory/stage_log.h"

namespace hpo::trainer {

OutOfMemory OutOfMemoryOutcome(const MemoryFault& fault, const MemoryUse& use,
                               const OomContext& context, const std::string& device_kind) {
  OutOfMemory oom;
  oom.kind = KindOfOom(fault, use, context.step);
  if (fault.refused.has_value()) oom.requested = fault.refused->requested;
  oom.peak = use.peak;
  oom.limit = context.job.task.limit > Bytes{} ? context.job.task.limit : use.total;
  oom.needed = context.job.task.predicted;
  oom.phase = context.phase;
  oom.step = context.step;
  oom.plan = context.plan;
  oom.message = fault.message;
  oom.traceback = fault.traceback;
  LogError(FormatOomBlock(context.job, device_kind, fault.message));
  return oom;
}

Failed DeviceLostOutcome(const MemoryFault& fault, const std::string& phase, int64_t step) {
  return Failed{.failure_class = FailureClass::kDeviceLost,
                .message = absl::StrCat("the device was lost in phase '", phase, "' of step ",
                                        step + 1, ": ", fault.message)};
}

}  // namespace hpo::trainer
