#include "cli/fleet/all_engines.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/fleet/engines/kubernetes_engine.h"
#include "cli/fleet/engines/ray_engine.h"
#include "cli/fleet/engines/sky_engine.h"
#include "cli/fleet/engines/slurm_engine.h"
#include "common/base/status.h"
#include "common/files/user_folder.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

struct KnownEngine {
  const char* name;
  const char* program;  // that its user has
};

constexpr KnownEngine kEngines[] = {
    {"slurm", "squeue"}, {"ray", "ray"}, {"kubernetes", "kubectl"}, {"sky", "sky"}};

std::string UserName() {
  const passwd* const user = getpwuid(geteuid());
  return user == nullptr ? absl::StrCat(geteuid()) : user->pw_name;
}

bool IsInPath(const std::string& program) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return false;
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    if (access(absl::StrCat(folder, "/", program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

absl::Status Ended(const std::string& fleet, const std::vector<std::string>& ends) {
  return absl::NotFoundError(
      absl::StrCat("no worker of fleet ", fleet, " waits or runs: ", absl::StrJoin(ends, "; ")));
}

// An engine that could not be asked may have the fleet.
absl::Status Unasked(const std::string& fleet, const std::vector<std::string>& engines) {
  return absl::UnavailableError(
      absl::StrCat("could not ask ", absl::StrJoin(engines, ", nor "), "; ",
                   fleet.empty() ? "whether fleets are there"
                                 : absl::StrCat("whether fleet ", fleet, " is there"),
                   " is not known; --engine names one engine to ask"));
}

}  // namespace

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const KnownEngine& engine : kEngines) names.emplace_back(engine.name);
  return names;
}

absl::StatusOr<std::unique_ptr<FleetEngine>> MakeEngine(const std::string& name,
                                                        EngineMeans means) {
  if (name == "slurm") {
    return std::make_unique<SlurmEngine>(std::move(means), OwnProgram("hpo-worker"), UserName());
  }
  if (name == "kubernetes") return std::make_unique<KubernetesEngine>(std::move(means));
  if (name == "sky") return std::make_unique<SkyEngine>(std::move(means));
  if (name == "ray") return std::make_unique<RayEngine>(std::move(means));
  return Unexpected("--engine", absl::StrJoin(EngineNames(), ", "), absl::StrCat("'", name, "'"));
}

absl::StatusOr<std::unique_ptr<FleetEngine>> FindEngine(EngineMeans means,
                                                        const std::string& fleet) {
  std::vector<std::string> programs;
  std::vector<std::string> found;
  for (const KnownEngine& engine : kEngines) {
    programs.emplace_back(engine.program);
    if (IsInPath(engine.program)) found.emplace_back(engine.name);
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("no engine of fleets here: expected one of ",
                                            absl::StrJoin(programs, ", "), " in PATH"));
  }
  if (found.size() == 1) return MakeEngine(found.front(), std::move(means));
  std::vector<std::string> unasked;
  std::vector<std::string> ends;
  for (const std::string& name : found) {
    HPO_ASSIGN_OR_RETURN(std::unique_ptr<FleetEngine> engine, MakeEngine(name, means));
    const absl::StatusOr<std::vector<NamedWorker>> workers = engine->List(fleet);
    if (workers.ok() && !workers->empty()) return engine;
    if (!workers.ok()) {
      unasked.push_back(absl::StrCat(name, ": ", workers.status().message()));
    } else if (!fleet.empty()) {
      const std::string end = engine->HowItEnded(fleet).value_or("");
      if (!end.empty()) ends.push_back(absl::StrCat("on ", name, ", ", end));
    }
  }
  if (!unasked.empty()) return Unasked(fleet, unasked);
  if (!ends.empty()) return Ended(fleet, ends);
  return absl::NotFoundError(absl::StrCat(fleet.empty() ? "no fleet" : "no fleet " + fleet, " on ",
                                          absl::StrJoin(found, ", "),
                                          "; --engine shows what one of them says"));
}

}  // namespace hpo::cli
