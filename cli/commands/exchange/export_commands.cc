#include "cli/commands/exchange/export_commands.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands/exchange/event_file.h"
#include "cli/render/json.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/files/write_file.h"
#include "common/interop/mlflow/mlflow_export.h"
#include "common/interop/optuna/optuna_file.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::ordered_json;

enum class Which { kAll, kStarted };

// Every such trial of the study, in order; how many.
absl::StatusOr<int64_t> ForEach(Which which, Session& session, const std::string& study,
                                const std::function<absl::Status(const TrialView&)>& take) {
  int64_t count = 0;
  const auto take_view = [&](const Trial& trial) -> absl::Status {
    if (which == Which::kStarted && trial.started == absl::InfinitePast()) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(const TrialView view,
                         session.client.trials().GetTrial(study, trial.id.number));
    ++count;
    return take(view);
  };
  HPO_RETURN_IF_ERROR(ForEachTrial(session.client.trials(), study, {}, take_view));
  return count;
}

void Tell(Session& session, const std::string& study, const std::string& place, int64_t count) {
  if (session.json) {
    PrintJson(Json{{"study", study}, {"exported_to", place}, {"trials", count}}, session.out);
  } else {
    session.out << count << " trials of " << study << " exported to " << place << "\n";
  }
}

absl::Status WriteEventFile(const fs::path& root, const TrialView& view) {
  const fs::path folder =
      root / view.trial.id.study / absl::StrFormat("%06d", view.trial.id.number.value);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make ", folder.string(), ": ", error.message()));
  }
  // Readers want a time in the name; the trial's own keeps it the same in every export.
  const int64_t seconds = absl::ToUnixSeconds(view.trial.created);
  return WriteFileAtomically(
      (folder / absl::StrFormat("events.out.tfevents.%010d.hpo", seconds)).string(),
      EventFile(view));
}

}  // namespace

absl::Status ExportMlflow(Session& session, const std::string& uri, const std::string& experiment) {
  HPO_RETURN_IF_ERROR(CheckMlflowUri(uri));
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::unique_ptr<HttpClient> http = MakeMlflowHttp({});
  const std::string& name = study.spec.name;
  MlflowClient client(uri, *http);
  MlflowExport runs(client, name, experiment.empty() ? name : experiment);
  HPO_RETURN_IF_ERROR(runs.WriteStudy(study, SystemClock().Now()));
  HPO_ASSIGN_OR_RETURN(const int64_t count,
                       ForEach(Which::kStarted, session, name,
                               [&](const TrialView& view) { return runs.Write(view); }));
  Tell(session, name, client.uri(), count);
  return absl::OkStatus();
}

absl::Status ExportTensorboard(Session& session, const std::string& folder) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const int64_t count,
                       ForEach(Which::kStarted, session, name, [&](const TrialView& view) {
                         return WriteEventFile(folder, view);
                       }));
  Tell(session, name, folder, count);
  return absl::OkStatus();
}

absl::Status ExportOptuna(Session& session, const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  const std::string& name = study.spec.name;
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<OptunaFile> file, OptunaFile::Begin(path, study.spec));
  HPO_RETURN_IF_ERROR(file->WriteStudyAttributes(study.attributes));
  HPO_ASSIGN_OR_RETURN(const int64_t count,
                       ForEach(Which::kAll, session, name,
                               [&](const TrialView& view) { return file->Write(view); }));
  HPO_RETURN_IF_ERROR(file->Commit());
  Tell(session, name, path, count);
  const bool narrowed = !study.spec.space.narrowings.empty();
  if (narrowed && !session.json) {
    session.out << "What narrows its space has no place in Optuna's format: every parameter is "
                   "exported with its full range.\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
