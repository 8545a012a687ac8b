// Residuals of memory estimates in the database: all that calibration is a fold of. Verbs over one
// connection, as in trial_store.h.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class CalibrationStore {
 public:
  explicit CalibrationStore(Database& database) : database_(database) {}

  // Returns the calibration's version with this residual.
  //   AlreadyExists  the attempt has one
  absl::StatusOr<int64_t> Insert(int64_t study_id, const ResidualRecord& record, absl::Time now);

  struct Stored {
    int64_t version = 0;
    memory::Residual residual;
  };
  // Of every study, in the order of their versions, up to version `last`: what calibration knew
  // then.
  absl::StatusOr<std::vector<Stored>> LoadAll(int64_t last = INT64_MAX) const;

 private:
  Database& database_;
};

}  // namespace hpo::server
