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
  std::string silent;  // what those say that do not answer
  for (const std::string& name : found) {
    HPO_ASSIGN_OR_RETURN(std::unique_ptr<FleetEngine> engine, MakeEngine(name, means));
    const absl::StatusOr<std::vector<NamedWorker>> workers = engine->List(fleet);
    if (workers.ok() && !workers->empty()) return engine;
    if (!workers.ok()) absl::StrAppend(&silent, "; ", name, ": ", workers.status().message());
  }
  return absl::NotFoundError(absl::StrCat(fleet.empty() ? "no fleet" : "no fleet " + fleet, " on ",
                                          absl::StrJoin(found, ", "),
                                          "; --engine shows what one of them says", silent));
}

}  // namespace hpo::cli
