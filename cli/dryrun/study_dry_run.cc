#include "cli/dryrun/study_dry_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/client/interrupts.h"
#include "cli/client/terminal.h"
#include "cli/dryrun/configuration_command.h"
#include "cli/dryrun/dry_run_pool.h"
#include "cli/dryrun/frontier_report.h"
#include "cli/dryrun/gpu_document.h"
#include "cli/dryrun/study_dry_run_words.h"
#include "cli/render/json.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "common/command_line/temporary_folder.h"
#include "common/command_line/wrapped_line.h"
#include "common/files/dry_run_package.h"
#include "common/files/read_file.h"
#include "common/study_file/study_file.h"
#include "memory/frontier/frontier.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

constexpr int kInterrupted = 130;
constexpr int kNothingFits = 3;
constexpr int kWrongWords = 2;  // of the package
// The first configurations that all fail with the same error end the command: it is the program's.
constexpr size_t kAllFail = 5;
constexpr absl::Duration kRedraw = absl::Seconds(1);

// The parameters on which memory may depend: those that the program sees, of those that the study
// names or of the usual ones; and those of the chart.
std::vector<std::string> RelevantOf(const StudySpec& study, const ConfigurationCommand& command,
                                    const std::vector<std::string>& chart) {
  std::vector<std::string> relevant = command.Seen(
      study.memory.relevant.empty() ? memory::UsualRelevant(study.space) : study.memory.relevant);
  for (const std::string& name : chart) {
    if (std::find(relevant.begin(), relevant.end(), name) == relevant.end()) {
      relevant.push_back(name);
    }
  }
  return relevant;
}

// The dry runs of one command, and what comes of them.
class StudyDryRun {
 public:
  StudyDryRun(const StudyDryRunOptions& options, const ConfigurationCommand& command,
              const std::string& folder, memory::Frontier& frontier)
      : options_(options),
        command_(command),
        folder_(folder),
        frontier_(frontier),
        shows_progress_(isatty(STDERR_FILENO) == 1) {}

  const std::vector<GpuDocument>& gpus() const { return gpus_; }
  const std::map<size_t, std::string>& errors() const { return errors_; }
  bool was_interrupted() const { return was_interrupted_; }

  // Until nothing is left to measure, or an interrupt.
  //   InvalidArgument  the package rejects the command line
  //   Internal         the first configurations all fail alike
  absl::Status Run() {
    DryRunPool pool;
    HPO_RETURN_IF_ERROR(StartMore(pool));
    while (pool.num_running() > 0) {
      ShowProgress(pool.num_running());
      const std::optional<EndedRun> ended =
          pool.Wait(InterruptEvents(), shows_progress_ ? kRedraw : absl::Minutes(1));
      ClearProgress();
      if (InterruptsSeen() > 0) {
        was_interrupted_ = true;
        return absl::OkStatus();
      }
      if (ended) HPO_RETURN_IF_ERROR(Take(*ended));
      HPO_RETURN_IF_ERROR(StartMore(pool));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status StartMore(DryRunPool& pool) {
    while (pool.num_running() < static_cast<size_t>(options_.jobs)) {
      const std::optional<size_t> next = frontier_.Next();
      if (!next) return absl::OkStatus();
      HPO_RETURN_IF_ERROR(Start(pool, *next));
    }
    return absl::OkStatus();
  }

  absl::Status Start(DryRunPool& pool, size_t index) {
    const std::string folder = absl::StrCat(folder_, "/", index);
    if (mkdir(folder.c_str(), 0700) != 0) return FileError(errno, folder);
    const absl::StatusOr<ConfigurationRun> run =
        command_.For(frontier_.considered().configurations[index], folder);
    if (!run.ok()) return Fail(index, std::string(run.status().message()));
    std::vector<std::string> words = DryRunCommand("hpo: memory dry-run: ");
    words.emplace_back("--json");
    // Where both are there, the last one counts.
    if (command_.NumGpus() > 1) {
      words.insert(words.end(), {"--count", absl::StrCat(command_.NumGpus())});
    }
    words.insert(words.end(), options_.passed_on.begin(), options_.passed_on.end());
    words.emplace_back("--");
    words.insert(words.end(), run->command.begin(), run->command.end());
    latest_ = Named(index);
    started_ = absl::Now();
    return pool.Start(index, words, run->environment, absl::StrCat(folder, "/dry-run.json"));
  }

  absl::Status Take(const EndedRun& ended) {
    const absl::StatusOr<std::vector<GpuDocument>> found = ReadGpuDocuments(ended.output);
    if (!found.ok()) {
      if (ended.status == kWrongWords) return found.status();
      return Fail(ended.id, std::string(found.status().message()));
    }
    gpus_ = *found;
    std::vector<memory::FrontierGpu> gpus;
    std::vector<memory::FrontierMeasurement> measured;
    std::vector<std::string> verdicts;
    for (const GpuDocument& document : *found) {
      gpus.push_back(document.gpu);
      measured.push_back(document.measured);
      verdicts.push_back(absl::StrCat(document.name, " ", VerdictText(document.measured.verdict),
                                      ", ", OrDash(document.measured.required)));
    }
    frontier_.Add(ended.id, gpus, std::move(measured));
    std::cerr << Printable(absl::StrCat(Named(ended.id), ": ", absl::StrJoin(verdicts, "; "), " (",
                                        ShortDuration(ended.duration), ")"))
              << std::endl;
    return absl::OkStatus();
  }

  absl::Status Fail(size_t index, const std::string& error) {
    frontier_.Fail(index);
    errors_[index] = error;
    std::cerr << Printable(absl::StrCat(Named(index), ": ", error)) << std::endl;
    const bool are_alike = std::all_of(errors_.begin(), errors_.end(),
                                       [&error](const auto& one) { return one.second == error; });
    if (frontier_.num_measured() > 0 || errors_.size() < kAllFail || !are_alike) {
      return absl::OkStatus();
    }
    return absl::InternalError(
        absl::StrCat("the first ", kAllFail, " configurations cannot be dry-run: ", error));
  }

  // The parameters that are varied.
  std::string Named(size_t index) const {
    ParamMap varied;
    const ParamMap& params = frontier_.considered().configurations[index];
    for (const memory::FrontierAxis& axis : frontier_.considered().axes) {
      if (const auto found = params.find(axis.name); found != params.end()) varied.insert(*found);
    }
    return varied.empty() ? "the configuration" : FormatParams(varied);
  }

  void ShowProgress(size_t num_running) const {
    if (!shows_progress_) return;
    std::cerr << "\r\033[K"
              << "dry run " << frontier_.num_measured() + errors_.size() + num_running
              << " of at most "
              << std::min<size_t>(static_cast<size_t>(options_.sample),
                                  frontier_.considered().configurations.size())
              << ": " << FitTo(Printable(latest_), 50) << ", "
              << ShortDuration(absl::Now() - started_) << std::flush;
  }

  void ClearProgress() const {
    if (shows_progress_) std::cerr << "\r\033[K" << std::flush;
  }

  const StudyDryRunOptions& options_;
  const ConfigurationCommand& command_;
  const std::string& folder_;
  memory::Frontier& frontier_;
  const bool shows_progress_;
  std::vector<GpuDocument> gpus_;
  std::map<size_t, std::string> errors_;
  std::string latest_;
  absl::Time started_;
  bool was_interrupted_ = false;
};

// Those that are named, in that order; else the two that matter most.
std::vector<size_t> ChartAxes(const memory::Frontier& frontier,
                              const std::vector<std::string>& named) {
  std::vector<size_t> axes;
  const std::vector<memory::FrontierAxis>& all = frontier.considered().axes;
  for (const std::string& name : named) {
    for (size_t axis = 0; axis < all.size(); ++axis) {
      if (all[axis].name == name) axes.push_back(axis);
    }
  }
  if (!named.empty()) return axes;
  axes = frontier.AxesByEffect();
  axes.resize(std::min<size_t>(axes.size(), 2));
  return axes;
}

int StatusOf(const memory::Frontier& frontier, size_t num_gpus) {
  size_t known = 0;
  for (size_t gpu = 0; gpu < num_gpus; ++gpu) {
    if (CountOf(frontier, gpu, memory::FrontierVerdict::kFits) > 0) return 0;
    if (CountOf(frontier, gpu, memory::FrontierVerdict::kTight) > 0) return 0;
    known += CountOf(frontier, gpu, memory::FrontierVerdict::kDoesNotFit);
  }
  return known > 0 ? kNothingFits : 1;
}

absl::StatusOr<int> Show(Session& session, const StudyDryRunOptions& options,
                         const FrontierReport& report) {
  if (session.json || options.json) {
    PrintJson(FrontierJson(report), session.out);
  } else {
    session.out << FrontierText(report, session.terminal.columns);
  }
  if (report.was_interrupted) return kInterrupted;
  return StatusOf(report.frontier, report.gpus.size());
}

absl::StatusOr<int> DryRun(Session& session, const StudyDryRunOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyOverrides overrides, OverridesFromEnvironment());
  const absl::StatusOr<StudySpec> loaded = LoadStudy(options.study, overrides);
  // Not the status of a configuration that does not fit, which a missing file's would be.
  if (!loaded.ok()) return absl::InvalidArgumentError(loaded.status().message());
  const StudySpec& study = *loaded;
  HPO_ASSIGN_OR_RETURN(const ConfigurationCommand command,
                       ConfigurationCommand::Create(study, options.command));
  if (command.IsTheSameForAll()) {
    std::cerr << "hpo: warning: the command has no placeholder such as {batch}, and names no file "
                 "that reads HPO_PARAMS: all configurations may be alike"
              << std::endl;
  }
  HPO_ASSIGN_OR_RETURN(memory::FrontierSpace space,
                       memory::FrontierSpaceOf(
                           study.space, {.relevant = RelevantOf(study, command, options.parameters),
                                         .seed = options.seed}));
  memory::FrontierOptions frontier_options{.most_measurements = static_cast<size_t>(options.sample),
                                           .measure_all = options.runs_all};
  if (options.runs_all) frontier_options.most_measurements = space.configurations.size();
  memory::Frontier frontier(study.space, std::move(space), frontier_options);
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-dry-run-study-"));
  HPO_RETURN_IF_ERROR(CountInterrupts());
  StudyDryRun run(options, command, folder->path(), frontier);
  HPO_RETURN_IF_ERROR(run.Run());
  if (frontier.num_measured() == 0 && !run.was_interrupted()) {
    return absl::InternalError(
        absl::StrCat("no configuration can be dry-run: ", run.errors().begin()->second));
  }
  return Show(session, options,
              {.study = study.name,
               .command = options.command.empty() ? study.trainer.command : options.command,
               .frontier = frontier,
               .gpus = run.gpus(),
               .errors = run.errors(),
               .axes = ChartAxes(frontier, options.parameters),
               .was_interrupted = run.was_interrupted()});
}

}  // namespace

absl::StatusOr<int> DryRunStudy(Session& session) {
  const int columns = session.terminal.columns > 0
                          ? std::min(session.terminal.columns, kTextColumns)
                          : kTextColumns;
  const std::variant<StudyDryRunOptions, int> options =
      ReadStudyDryRunWords(session.forwarded, session.out, std::cerr, columns);
  if (const int* const status = std::get_if<int>(&options)) return *status;
  return DryRun(session, std::get<StudyDryRunOptions>(options));
}

}  // namespace hpo::cli
