// Tested by tests/cli/fleet/engines/slurm_engine_test.cc and its like for the other engines.
#include "cli/fleet/engines/engine_steps.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace hpo::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::string> RunOf(const EngineMeans& means, const EngineWords& engine,
                                  const std::vector<std::string>& words, absl::Duration patience) {
  const absl::StatusOr<ProgramOutput> ended =
      means.run({.words = words, .patience = patience, .if_slow = std::string(engine.slow)});
  if (absl::IsDeadlineExceeded(ended.status())) {
    return absl::UnavailableError(absl::StrCat(engine.name, "'s ", ended.status().message()));
  }
  if (absl::IsNotFound(ended.status())) {
    return absl::NotFoundError(absl::StrCat(words[0], " is not in PATH: ", engine.missing));
  }
  HPO_RETURN_IF_ERROR(ended.status());
  if (ended->status == 0) return ended->output;
  return absl::UnavailableError(
      absl::StrCat(engine.name, "'s ", words[0], " failed: ", ComplaintOf(words[0], *ended)));
}

absl::Status CheckSetup(const EngineMeans& means, const FleetPlan& plan) {
  if (plan.setup.empty()) return absl::OkStatus();
  const absl::StatusOr<ProgramOutput> checked =
      means.run({.words = {"bash", "-n", "-c", absl::StrJoin(plan.setup, "\n")}});
  if (!checked.ok() || checked->status == 0) return absl::OkStatus();
  return Unexpected("--setup", "a line of shell",
                    absl::StrCat("'", absl::StrJoin(plan.setup, "; "), "' (",
                                 ComplaintOf("bash", *checked), ")"));
}

std::string WorkersText(size_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

size_t NumLive(const std::vector<NamedWorker>& workers) {
  return static_cast<size_t>(
      std::count_if(workers.begin(), workers.end(),
                    [](const NamedWorker& named) { return named.worker.IsLive(); }));
}

std::string ResizedText(size_t before, size_t wanted, absl::string_view left_out) {
  return absl::StrCat("asked to have ", WorkersText(wanted), wanted < before ? "; " : "",
                      wanted < before ? left_out : "");
}

absl::Status NoSuchFleet(const EngineWords& engine, const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no worker of fleet ", name, " waits or runs on ",
                                          engine.name, "; hpo fleet status lists the fleets"));
}

absl::Status CheckIsNew(const EngineWords& engine, const FleetPlan& plan,
                        const std::vector<NamedWorker>& before) {
  if (before.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("fleet ", plan.name, " is on ", engine.name, " already, with ",
                   WorkersText(before.size()), "; change their number: hpo fleet scale ", plan.name,
                   " --workers ", plan.workers, ", or give another --name"));
}

std::vector<std::string> NotesOnServer(const FleetPlan& plan) {
  if (plan.server.HasSecret() || !IsLoopback(plan.server.address)) return {};
  return {absl::StrCat("workers on other nodes cannot reach the server, as ", plan.server.address,
                       " is of this machine alone")};
}

absl::Status EndAll(FleetEngine& engine, const EngineMeans& means, const EngineWords& words,
                    const std::string& name, absl::Duration patience,
                    const std::function<absl::Status(const std::vector<NamedWorker>&)>& end) {
  HPO_ASSIGN_OR_RETURN(std::vector<NamedWorker> left, engine.List(name));
  if (left.empty()) return NoSuchFleet(words, name);
  const auto begin = std::chrono::steady_clock::now();
  absl::Duration paused = absl::ZeroDuration();
  size_t num_shown = 0;
  while (!left.empty()) {
    if (left.size() != num_shown) {
      num_shown = left.size();
      means.notify(absl::StrCat("fleet ", name, ": ", WorkersText(num_shown),
                                " left, told to save trials and to end"));
    }
    if (NumLive(left) > 0) HPO_RETURN_IF_ERROR(end(left));
    // The engine's programs may take longer than the pauses between them.
    const absl::Duration waited =
        std::max(paused, absl::FromChrono(std::chrono::steady_clock::now() - begin));
    if (waited >= patience || !means.pause(kBetweenLooks)) {
      return absl::DeadlineExceededError(absl::StrCat(
          WorkersText(left.size()), " of fleet ", name, left.size() == 1 ? " has" : " have",
          " not ended after ", absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))),
          ", the first is ", left.front().worker.id, " on ",
          left.front().worker.node.empty() ? "no node" : left.front().worker.node,
          "; all have been asked to end, and hpo fleet status ", name,
          " shows when they have ended"));
    }
    paused += kBetweenLooks;
    HPO_ASSIGN_OR_RETURN(left, engine.List(name));
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
