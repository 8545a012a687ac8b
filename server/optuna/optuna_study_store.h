// Studies of Optuna's clients in the database.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h, and those named here. NotFound names the id.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/interop/optuna/optuna_trial.h"
#include "common/study/study.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// Whose an attribute is: the user's, or a sampler's or pruner's.
enum class OptunaAttribute { kUser, kSystem };

// A study as Optuna's clients see it.
struct OptunaStudySummary {
  int64_t id = 0;
  std::string name;
  std::vector<Direction> directions;                     // by objective
  std::map<std::string, std::string> user_attributes;    // JSON
  std::map<std::string, std::string> system_attributes;  // JSON
  bool operator==(const OptunaStudySummary&) const = default;
};

class OptunaStudyStore {
 public:
  explicit OptunaStudyStore(Database& database) : database_(database) {}

  // Returns the study's id.
  //   AlreadyExists  a study of this name, one of ours included
  absl::StatusOr<int64_t> CreateStudy(const std::string& name,
                                      const std::vector<Direction>& directions);
  // With all that it has.
  //   NotFound
  absl::Status DeleteStudy(int64_t study);
  //   NotFound
  absl::Status SetStudyAttribute(int64_t study, OptunaAttribute kind, const std::string& key,
                                 const std::string& json);
  //   NotFound
  absl::StatusOr<int64_t> FindStudy(const std::string& name) const;
  absl::StatusOr<OptunaStudySummary> LoadStudy(int64_t study) const;
  absl::StatusOr<std::vector<OptunaStudySummary>> LoadStudies() const;

  //   NotFound
  absl::Status RequireStudy(int64_t study) const;
  // Of a trial in `state`; the study is there.
  //   InvalidArgument  neither none nor one for each objective; none at COMPLETE
  absl::Status CheckValues(int64_t study, OptunaState state, size_t num_values) const;

 private:
  absl::StatusOr<int64_t> CountObjectives(int64_t study) const;
  absl::StatusOr<OptunaStudySummary> ReadStudy(const Statement& row) const;

  Database& database_;
};

}  // namespace hpo::server
