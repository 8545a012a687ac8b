#include "cli/commands/studies/archive_commands.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/client/advice.h"
#include "cli/render/json.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "common/files/read_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSuffix[] = ".hpo-study";

}  // namespace

absl::Status DeleteStudy(Session& session, const DeleteOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  const std::string path = options.archive.empty() ? name + kSuffix : options.archive;
  std::string sha256;
  if (!options.no_archive) {
    if (std::filesystem::exists(path)) {
      return absl::AlreadyExistsError(absl::StrCat(
          path,
          " is there: expected a new file for the archive (--archive FILE), nothing is deleted"));
    }
    const absl::StatusOr<ArchiveEnd> archived = session.client.studies().ArchiveStudy(name, path);
    if (!archived.ok()) {
      return Annotate(archived.status(), "nothing is deleted, as the archive cannot be written");
    }
    sha256 = archived->sha256;
  }
  const absl::StatusOr<int64_t> trials = session.client.studies().DeleteStudy(name, sha256);
  if (!trials.ok()) {
    // It is no archive of something that is gone.
    if (!options.no_archive && !absl::IsUnavailable(trials.status())) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
    return trials.status();
  }
  if (session.json) {
    PrintJson({{"study", name},
               {"trials", *trials},
               {"archive", options.no_archive ? Json(nullptr) : Json(path)}},
              session.out);
    return absl::OkStatus();
  }
  session.out << "study " << name << " with " << *trials << " trials deleted";
  if (!options.no_archive) {
    session.out << WithServer(
        absl::StrCat("; to add it again: hpo study restore ", ShellWord(path)),
        session.client.advised_address());
  }
  session.out << "\n";
  return absl::OkStatus();
}

absl::Status RestoreStudy(Session& session, const std::string& file, const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const std::string archive, ReadFile(file));
  HPO_ASSIGN_OR_RETURN(const StudyStatus study,
                       session.client.studies().RestoreStudy(name, archive));
  if (session.json) {
    PrintJson(StudyJson(study), session.out);
    return absl::OkStatus();
  }
  session.out << "study " << study.spec.name << " restored: " << study.counts.Finished()
              << " trials have ended\n";
  return absl::OkStatus();
}

}  // namespace hpo::cli
