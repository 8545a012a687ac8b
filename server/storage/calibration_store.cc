#include "server/storage/calibration_store.h"

#include <utility>

#include "common/base/status.h"
#include "server/storage/row_codec.h"

namespace hpo::server {

void VisitColumns(Is<ResidualRecord> auto& record, auto visit) {
  visit({"plan"}, record.plan);
  visit({"predicted"}, record.predicted.needed_limit);
  visit({"predicted_live"}, record.predicted.live_peak);
  visit({"predicted_reserved"}, record.predicted.reserved_peak);
  visit({"fragile"}, record.predicted.fragile);
  visit({"live"}, record.used.live_peak);
  visit({"reserved"}, record.used.reserved_peak);
  visit({"device_used"}, record.used.device_peak);
  visit({"usable"}, record.limit);
  visit({"score"}, record.residual.score);
  visit({"censored"}, record.residual.censored);
  visit({"device_kind"}, record.device.kind);
  visit({"device"}, record.device.name);
  visit({"driver"}, record.device.driver);
  visit({"torch_build"}, record.torch_build);
}

namespace {

// What calibration needs of a row; `predicted` says the residual's band.
struct JudgedEstimate {
  CalibrationStore::Stored stored;
  Bytes predicted;
};

void VisitColumns(Is<JudgedEstimate> auto& estimate, auto visit) {
  visit({"version"}, estimate.stored.version);
  visit({"predicted"}, estimate.predicted);
  visit({"score"}, estimate.stored.residual.score);
  visit({"censored"}, estimate.stored.residual.censored);
  visit({"device_kind"}, estimate.stored.residual.residual_class.device_kind);
}

}  // namespace

absl::StatusOr<int64_t> CalibrationStore::Insert(int64_t study_id, const ResidualRecord& record,
                                                 absl::Time now) {
  HPO_RETURN_IF_ERROR(InsertRow(database_, "INSERT INTO memory_residual",
                                {{"study_id", study_id},
                                 {"number", record.trial.value},
                                 {"attempt", record.attempt.value},
                                 {"time", absl::ToUnixMicros(now)}},
                                record));
  return database_.LastInsertId();
}

absl::StatusOr<std::vector<CalibrationStore::Stored>> CalibrationStore::LoadAll(
    int64_t last) const {
  HPO_ASSIGN_OR_RETURN(std::vector<JudgedEstimate> estimates,
                       SelectAll(database_, JudgedEstimate(),
                                 "memory_residual WHERE version <= ?1 ORDER BY version", last));
  std::vector<Stored> residuals;
  for (JudgedEstimate& estimate : estimates) {
    estimate.stored.residual.residual_class.band = memory::BandOf(estimate.predicted);
    residuals.push_back(std::move(estimate.stored));
  }
  return residuals;
}

}  // namespace hpo::server
