#include "worker/trainer/training/loop_state.h"

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/study/trial_measurement.h"
#include "nlohmann/json.hpp"

namespace hpo {
nlohmann::json LoopStateToJson(const LoopState& state) {
  nlohmann::json json = {{"step", state.step},
                         {"epoch", state.epoch},
                         {"batches_done", state.batches_done},
                         {"measured_step", state.measured_step},
                         {"loss_sum", state.loss_sum},
                         {"loss_steps", state.loss_steps},
                         {"best_kept", state.best_kept},
                         {"measurements", MeasurementsToJson(state.measurements)},
                         {"plan", PlanToJson(state.plan)},
                         {"evaluation_rows", state.evaluation_rows},
                         {"limit_bytes", state.limit.count},
                         {"loss_scale", state.loss_scale.scale},
                         {"good_steps", state.loss_scale.good_steps},
                         {"skipped_steps", state.loss_scale.skipped}};
  if (state.best.has_value()) json["best"] = MetricsToJson(*state.best);
  return json;
}

absl::StatusOr<LoopState> LoopStateFromJson(const nlohmann::json& json) {
  LoopState state;
  JsonReader reader(json, "");
  reader.Required("step", state.step);
  reader.Required("epoch", state.epoch);
  reader.Required("batches_done", state.batches_done);
  reader.Required("measured_step", state.measured_step);
  reader.Required("loss_sum", state.loss_sum);
  reader.Required("loss_steps", state.loss_steps);
  reader.RequiredWith("measurements", state.measurements, MeasurementsFromJson);
  reader.RequiredWith("plan", state.plan, PlanFromJson);
  reader.Required("evaluation_rows", state.evaluation_rows);
  reader.Required("limit_bytes", state.limit);
  reader.Required("loss_scale", state.loss_scale.scale);
  reader.Required("good_steps", state.loss_scale.good_steps);
  reader.Required("skipped_steps", state.loss_scale.skipped);
  if (reader.Has("best")) reader.Required("best", state.best.emplace());
  reader.Optional("best_kept", state.best_kept);
  HPO_RETURN_IF_ERROR(reader.status());
  if (state.step < 1 || state.epoch < 0 || state.batches_done < 0 || state.evaluation_rows < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected step >= 1, epoch and batches_done >= 0 and evaluation_rows >= 1, got ",
        state.step, ", ", state.epoch, ", ", state.batches_done, " and ", state.evaluation_rows));
  }
  return state;
}

}  // namespace hpo
