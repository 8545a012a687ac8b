#include "server/storage/calibration_store.h"

#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/storage/row_codec.h"

namespace hpo::server {

absl::StatusOr<int64_t> CalibrationStore::Insert(int64_t study_id, const ResidualRecord& record,
                                                 absl::Time now) {
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("INSERT INTO memory_residual VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
                   "?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)")
          .Bind(study_id, record.trial.value, record.attempt.value,
                JsonText(PlanToJson(record.plan)), record.predicted.needed_limit,
                record.predicted.live_peak, record.predicted.reserved_peak,
                record.predicted.fragile, record.used.live_peak, record.used.reserved_peak,
                record.used.device_peak, record.limit, record.residual.score,
                record.residual.censored, record.device.kind, record.device.name,
                record.device.driver, record.torch_build, now)
          .Run());
  return database_.LastInsertId();
}

absl::StatusOr<std::vector<CalibrationStore::Stored>> CalibrationStore::LoadAll(
    int64_t last) const {
  Statement rows = database_.Prepare(
      "SELECT version, predicted, score, censored, device_kind FROM memory_residual "
      "WHERE version <= ?1 ORDER BY version");
  rows.Bind(last);
  std::vector<Stored> residuals;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return residuals;
    residuals.push_back({.version = rows.Int(0),
                         .residual = {.residual_class = {.device_kind = rows.Text(4),
                                                         .band = memory::BandOf(rows.Size(1))},
                                      .score = rows.Real(2),
                                      .censored = rows.Bool(3)}});
  }
}

}  // namespace hpo::server
