// Our own studies as Optuna's clients see them: to read, not to change.
//
// Their ids lie above those of Optuna's studies and follow from the database's rows alone, so that
// they are the same after a restart. A study's key has 28 bits, its row and the last bits of the
// time when it was made: a study in the row of one that was deleted is another one to clients that
// remember. Its id is 2^52 + key, a trial's 2^52 + key * 2^24 + number; JavaScript holds both
// exactly. Studies beyond row 262,143 are not seen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/api/study_queries.h"
#include "server/optuna/optuna_study_store.h"
#include "server/optuna/optuna_trial_store.h"
#include "server/storage/store.h"

namespace hpo::server {

constexpr int64_t kFirstOwnId = int64_t{1} << 52;

constexpr bool IsOwnId(int64_t id) { return id >= kFirstOwnId; }

// Thread-safe.
class OwnStudies {
 public:
  // Both outlive it.
  OwnStudies(const Store& store, const StudyQueries& queries) : store_(store), queries_(queries) {}

  // nullopt: none of this name.
  absl::StatusOr<std::optional<int64_t>> Find(const std::string& name) const;
  // Those that can be read.
  absl::StatusOr<std::vector<OptunaStudySummary>> List() const;
  //   NotFound  no such study
  absl::StatusOr<std::string> NameOf(int64_t study) const;
  absl::StatusOr<OptunaStudySummary> Get(int64_t study) const;
  // The study of a trial's id, by name.
  //   NotFound  no such study
  absl::StatusOr<std::string> StudyOf(int64_t trial) const;

  //   NotFound  no such trial
  absl::StatusOr<int64_t> FindTrial(int64_t study, int64_t number) const;
  absl::StatusOr<OptunaTrial> GetTrial(int64_t trial) const;
  // By id, each once.
  //   NotFound  no such study
  absl::Status GetTrials(int64_t study, const OptunaTrialQuery& query,
                         const TakeOptunaTrial& take) const;

 private:
  absl::StatusOr<OptunaTrial> Load(int64_t key, const StudySpec& spec, TrialNumber number) const;

  const Store& store_;
  const StudyQueries& queries_;
};

}  // namespace hpo::server
