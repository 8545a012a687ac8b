// A study as text that another server can take up: lines of JSON, a row of the database each.
//
//   {"format":"hpo-study","version":1,"schema":13,"study":"criteria"}
//   {"table":"trial","row":{"number":0,"state":"COMPLETED", ...}}  rows in the tables' order
//   {"end":{"rows":123,"trials":17,"sha256":"..."}}                digest of the lines before it
//
// Columns are the database's (the migrations describe them), without the study's id. A real number
// that is not finite is the text of it in an object, {"real":"inf"}.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// Takes one line, its newline included; what it returns ends the writing.
using ArchiveSink = std::function<absl::Status(absl::string_view)>;

// The tables that hold rows of a study, those that others refer to first.
struct StudyTable {
  const char* name;
  const char* order;    // of its rows
  const char* without;  // a column that the restoring database makes itself; "": none
};
inline constexpr StudyTable kStudyTables[] = {
    {"study_data", "file", ""},
    {"study_prior", "position", ""},
    {"trial", "number", ""},
    {"attempt", "number, attempt", ""},
    {"measurement", "number, attempt, step", ""},
    {"memory_record", "number, attempt, sequence", ""},
    {"attempt_log", "number, attempt", ""},
    {"memory_residual", "version", "version"},
    {"suggestion", "number", ""},
    {"event", "sequence", "id"},
    {"attribute", "number, key", ""},
    {"dry_run", "number, position", ""},
};

// In one read transaction. How many trials it holds.
absl::StatusOr<int64_t> WriteStudyArchive(Database& database, int64_t study_id,
                                          const std::string& study, const ArchiveSink& take);

// Inserts the study under `name`, or its own where that is empty; its id and its name.
//   InvalidArgument  no archive, one that is not whole, or of a newer version; names the line
//   AlreadyExists    a study of this name
struct RestoredStudy {
  int64_t id = 0;
  std::string name;
};
absl::StatusOr<RestoredStudy> InsertStudyArchive(Database& database, const std::string& name,
                                                 absl::string_view archive);

// Removes all rows of the study.
absl::Status DeleteStudyRows(Database& database, int64_t study_id);

}  // namespace hpo::server
