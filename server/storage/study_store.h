// Studies, server epoch and workers in the database.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h, and those named here.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/worker_facts.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class StudyStore {
 public:
  explicit StudyStore(Database& database) : database_(database) {}

  // Starts an epoch and returns its number; calls AnswerStore::ForgetOld.
  absl::StatusOr<int64_t> BeginEpoch(absl::Time now);

  // 32 hexadecimal digits, made with the database and kept by its copies.
  absl::StatusOr<std::string> DatabaseId() const;

  //   AlreadyExists  an Optuna client has a study of this name
  absl::Status CheckNotOptunas(const std::string& name) const;

  // Returns the study's id.
  //   AlreadyExists  a study of this name, also one of an Optuna client's
  absl::StatusOr<int64_t> Insert(const StudySpec& spec, absl::Time now);
  absl::Status UpdateSpec(int64_t study_id, const StudySpec& spec);
  absl::Status UpdateOrder(int64_t study_id, StudyOrder order, TrialNumber failures_from);
  // What the study's file last stated: what has not changed in it since changes nothing, whatever
  // `hpo study extend` did meanwhile.
  absl::Status RecordStated(int64_t study_id, const StudySpec& spec);
  absl::StatusOr<StudySpec> LoadStated(int64_t study_id) const;
  // Makes `priors` those of the study.
  absl::Status RecordPriors(int64_t study_id, const std::vector<StudyPrior>& priors);
  struct Studies {
    std::vector<StudyRecord> records;               // in order of creation
    std::map<std::string, std::string> unreadable;  // by name: why its row cannot be read
  };
  absl::StatusOr<Studies> LoadAll() const;
  struct Birth {
    int64_t id = 0;
    std::string name;
    absl::Time created;
  };
  // Of all of them, also of those whose row cannot be read.
  absl::StatusOr<std::vector<Birth>> Births() const;
  absl::StatusOr<int64_t> StudiesVersion() const;
  // Random, of this database.
  absl::StatusOr<std::string> TokenSecret() const;

  absl::Status AddWallClock(int64_t study_id, absl::Duration used);

  // Records with which data the study was begun; the first digest of a file stays.
  //   FailedPrecondition  the study was begun with another digest; names study, file and both
  absl::Status PinData(int64_t study_id, const std::string& study, const std::string& file,
                       const std::string& digest);

  absl::Status UpsertWorker(const WorkerFacts& facts, absl::Time now);
  // Which process the worker was when it last registered; all of it empty where that is not known,
  // or where it was another instance.
  absl::StatusOr<ProcessIdentity> LoadProcess(const std::string& worker,
                                              const std::string& instance_key) const;

  // Which workers get no more trials, by name. One that is drained already stays as it is.
  absl::Status DrainWorker(const std::string& worker, absl::Time now);
  absl::Status ResumeWorker(const std::string& worker);
  absl::StatusOr<std::set<std::string>> DrainedWorkers() const;

 private:
  absl::Status BumpStudiesVersion();
  absl::StatusOr<StudyRecord> ReadStudy(const Statement& row) const;
  absl::StatusOr<std::vector<StudyPrior>> LoadPriors(int64_t study_id) const;

  Database& database_;
};

}  // namespace hpo::server
