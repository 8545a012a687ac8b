#include "worker/trainer/checkpoints/loop_state.h"

#include "common/base/status.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {

void VisitFields(Is<LoopState> auto& state, auto visit) {
  visit({"step"}, state.step);
  visit({"epoch"}, state.epoch);
  visit({"batches_done"}, state.batches_done);
  visit({"measured_step"}, state.measured_step);
  visit({"loss_sum"}, state.loss_sum);
  visit({"loss_steps"}, state.loss_steps);
  visit({"best", kIfSaid}, state.best);
  visit({"best_kept", kAlways}, state.best_kept);
  visit({"measurements"}, state.measurements);
  visit({"plan"}, state.plan);
  visit({"evaluation_rows"}, state.evaluation_rows);
  visit({"limit"}, state.limit);
  visit({"loss_scale"}, state.loss_scale.scale);
  visit({"good_steps"}, state.loss_scale.good_steps);
  visit({"skipped_steps"}, state.loss_scale.skipped);
}

nlohmann::json LoopStateToJson(const LoopState& state) { return ToJson(state); }

absl::StatusOr<LoopState> LoopStateFromJson(const nlohmann::json& json) {
  HPO_ASSIGN_OR_RETURN(const LoopState state, FromJson<LoopState>(json));
  if (state.step < 1 || state.epoch < 0 || state.batches_done < 0 || state.evaluation_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected step >= 1, epoch and batches_done >= 0 and evaluation_rows >= 1, got ",
        state.step, ", ", state.epoch, ", ", state.batches_done, " and ", state.evaluation_rows));
  }
  return state;
}

}  // namespace hpo::trainer
