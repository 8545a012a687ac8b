#include "worker/command/run_command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/json_reader.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/device/process_tree.h"
#include "common/files/read_file.h"
#include "common/files/spawn.h"
#include "common/files/write_file.h"
#include "common/study/outcome_text.h"
#include "worker/command/card_watch.h"
#include "worker/command/child_process.h"
#include "worker/command/param_text.h"
#include "worker/command/unstarted_program.h"

namespace hpo::command {
namespace {

constexpr absl::Duration kPollTime = absl::Milliseconds(50);
constexpr absl::Duration kMemoryTime = absl::Milliseconds(200);
// What a program's children may still print once it has ended itself.
constexpr absl::Duration kLastWords = absl::Seconds(1);
// From SIGTERM to SIGKILL where nobody waits for the trial any more.
constexpr absl::Duration kAbandonedGrace = absl::Milliseconds(500);

using FileTime = std::optional<std::filesystem::file_time_type>;

FileTime WrittenAt(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? FileTime() : time;
}

// How a run ended: one of the two is not 0 where it ended badly. A shell says 128 + signal for what
// it ran.
struct RunExit {
  int code = 0;
  int signal = 0;
};

RunExit ExitOf(int status) {
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  const int code = WEXITSTATUS(status);
  if (code > 128 && code < 128 + NSIG) return {.signal = code - 128};
  return {.code = code};
}

// Python would keep what it prints until there is enough of it; TensorFlow and JAX would take the
// whole card at once, so that what a trial needs could not be seen.
std::map<std::string, std::string> ProgramEnvironment(const TrainerJob& job) {
  std::map<std::string, std::string> environment = ParamVariables(job.task.params);
  environment.emplace("HPO_OUTPUT_DIR", job.output_dir);
  for (const auto& [name, value] :
       {std::pair{"PYTHONUNBUFFERED", "1"}, std::pair{"TF_FORCE_GPU_ALLOW_GROWTH", "true"},
        std::pair{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}) {
    if (std::getenv(name) == nullptr) environment.emplace(name, value);
  }
  return environment;
}

// The card as it is now; nullopt where it cannot be watched.
std::optional<CardWatch> WatchCard(GpuProbe* probe, const std::string& uuid) {
  if (probe == nullptr) return std::nullopt;
  const absl::StatusOr<std::vector<GpuState>> cards = probe->List();
  if (!cards.ok()) return std::nullopt;
  const auto card = std::find_if(cards->begin(), cards->end(),
                                 [&uuid](const GpuState& one) { return one.uuid == uuid; });
  if (card == cards->end()) return std::nullopt;
  return CardWatch(*probe, *card, HasTheDriversProcessNumbers());
}

class CommandRun {
 public:
  CommandRun(const CommandOptions& options, const TrainerJob& job, MemoryPlan plan,
             std::optional<CardWatch> card, EventSink& events, StopSource& stop)
      : options_(options),
        job_(job),
        plan_(plan),
        card_(std::move(card)),
        events_(events),
        stop_(stop),
        reader_(job.task.objective.metric, options.patterns) {}

  // How the program ended; nullopt: stopped on request without a result.
  std::optional<TrialOutcome> Run() {
    const std::map<std::string, std::string> values = JobValues(job_, plan_);
    const absl::StatusOr<std::string> command =
        options_.command.Fill(job_.task.params, values, /*for_shell=*/true);
    if (!command.ok()) return Misconfigured("--trainer", command.status());
    absl::StatusOr<std::string> metrics_file =
        options_.metrics_file.Fill(job_.task.params, values, /*for_shell=*/false);
    if (!metrics_file.ok()) return Misconfigured("--metrics-file", metrics_file.status());
    metrics_file_ = *std::move(metrics_file);
    const absl::Status configured = WriteConfigs(values);
    if (!configured.ok()) return CannotRun(configured);
    const FileTime before = WrittenAt(metrics_file_);
    absl::StatusOr<std::unique_ptr<ChildProcess>> child =
        ChildProcess::Start(*command, ProgramEnvironment(job_));
    if (!child.ok()) return CannotRun(child.status());
    Watch(**child);
    Send(reader_.Finish());
    if (const size_t more = reader_.num_left_out(); more > 0) {
      events_.Send(LogMessage{
          .level = "warning",
          .text = absl::StrCat("a dict that the program printed has ", more,
                               " metrics beyond the limits, which are left out: at most ",
                               kMetricLimit.most, ", with names of at most ", kNameLimit.most,
                               " bytes")});
    }
    exit_ = ExitOf((*child)->End());
    if (on_cpu()) peak_ = std::max(peak_, (*child)->largest_resident());
    metrics_file_is_new_ = WrittenAt(metrics_file_) != before;
    return Judge();
  }

  bool stopped() const { return stop_reason_.has_value(); }
  // SIGKILL where another one has killed the program by it; else 0.
  int signal() const { return reader_.error().ok() && exit_.signal == SIGKILL ? SIGKILL : 0; }
  // CommandEnd::cannot_start.
  const std::string& cannot_start() const { return cannot_start_; }
  // Of the device's memory; 0 where a card is not seen.
  Bytes peak() const { return peak_; }

 private:
  bool on_cpu() const { return job_.device == "cpu"; }
  // Also where the worker is gone (MessageChannel).
  bool is_abandoned() const { return stop_reason_ == "lease lost"; }

  static TrialOutcome Misconfigured(const char* option, const absl::Status& status) {
    return Failed{.failure_class = FailureClass::kBadConfiguration,
                  .message = absl::StrCat(option, ": ", status.message())};
  }

  static TrialOutcome CannotRun(const absl::Status& status) {
    return Failed{.failure_class = FailureClass::kInternal,
                  .message = std::string(status.message())};
  }

  // The files that the command names.
  absl::Status WriteConfigs(const std::map<std::string, std::string>& values) const {
    for (const char* place : {"config", "config:yaml", "config:json"}) {
      if (!options_.command.Has(place) || job_.task.params.contains(place)) continue;
      HPO_RETURN_IF_ERROR(WriteFileAtomically(values.at(place), ConfigText(job_.task.params)));
    }
    return absl::OkStatus();
  }

  void Send(const std::vector<Measurement>& measured) {
    for (const Measurement& measurement : measured) events_.Send(MeasurementMessage{measurement});
  }

  void Watch(ChildProcess& child) {
    absl::Time kill_at = absl::InfiniteFuture();
    absl::Time look_at = absl::InfinitePast();
    absl::Time quiet_at = absl::InfiniteFuture();
    const auto on_line = [this](absl::string_view line, bool overwritten) {
      Send(reader_.Take(line, overwritten));
    };
    while (child.ReadLines(kPollTime, on_line) || !child.HasEnded()) {
      const absl::Time now = absl::Now();
      const bool ended = child.HasEnded();
      if (ended) quiet_at = std::min(quiet_at, now + kLastWords);
      if (now >= quiet_at || (ended && is_abandoned())) return;
      if (!stop_reason_) {
        if (const std::optional<StopRequest> asked = stop_.Poll()) {
          stop_reason_ = asked->reason;
          child.Signal(SIGTERM);
          kill_at = now + (is_abandoned() ? std::min(kAbandonedGrace, options_.stop_grace)
                                          : options_.stop_grace);
        }
      }
      // What it prints is not understood, so that what it may still find is lost.
      if (!reader_.error().ok() && kill_at == absl::InfiniteFuture()) {
        child.Signal(SIGTERM);
        kill_at = now + options_.stop_grace;
      }
      if (now >= look_at) {
        look_at = now + kMemoryTime;
        WatchMemory(child);
      }
      if (now >= kill_at) child.Signal(SIGKILL);
    }
  }

  void WatchMemory(ChildProcess& child) {
    if (card_.has_value()) peak_ = std::max(peak_, card_->Held(Descendants(getpid())));
    if (!on_cpu() || over_limit_) return;
    peak_ = std::max(peak_, child.Resident());
    if (job_.task.limit.count == 0 || peak_ <= job_.task.limit) return;
    over_limit_ = true;
    child.Signal(SIGKILL);
  }

  std::optional<TrialOutcome> Judge() {
    const bool ended_well = exit_.code == 0 && exit_.signal == 0;
    if (over_limit_) {
      return RanOut(OomKind::kConfiguration, absl::StrCat("the program held ", FormatBytes(peak_),
                                                          " of host memory; the trial's limit is ",
                                                          FormatBytes(job_.task.limit)));
    }
    if (!reader_.error().ok()) return Misread();
    const bool is_unread = ended_well && metrics_file_.empty() && reader_.unread().has_value();
    if (stopped() && (!ended_well || is_unread)) return Stopped();
    if (is_unread) return Unread(*reader_.unread());
    const absl::StatusOr<Metrics> metrics = Result();
    const bool has_result = metrics.ok() && metrics->contains(job_.task.objective.metric);
    if (ended_well && has_result) {
      return Completed{.metrics = *metrics};
    }
    if (!reader_.oom_line().empty()) {
      return RanOut(reader_.is_host_oom() ? OomKind::kHost : OomKind::kConfiguration,
                    reader_.oom_line());
    }
    if (stopped()) return Stopped();
    if (ended_well) return WithoutResult(metrics);
    cannot_start_ = reader_.last()
                        ? ""
                        : WhyNotStarted(exit_.code, reader_.Tail(), options_.command.PlainText());
    const std::string end = exit_.signal != 0
                                ? absl::StrCat("was killed by ", SignalName(exit_.signal))
                                : absl::StrCat("exited with status ", exit_.code);
    return Failed{.failure_class = FailureClass::kInternal,
                  .message = WithTail(absl::StrCat("the program ", end))};
  }

  TrialOutcome Misread() const {
    return Failed{.failure_class = FailureClass::kBadConfiguration,
                  .message = std::string(reader_.error().message())};
  }

  // The last measurement is not the result, and nobody would see that.
  TrialOutcome Unread(const UnreadObjective& unread) const {
    const std::string& metric = job_.task.objective.metric;
    std::string text;
    const bool is_null = unread.value && (*unread.value == "None" || *unread.value == "null");
    if (unread.value) {
      text = absl::StrCat("expected a ", is_null ? "finite " : "", "number as the metric ", metric,
                          ", got ", CutAfter(*unread.value, 80));
    } else {
      text = absl::StrCat("the metric ", metric, " cannot be read, as the dict around it is not ",
                          "understood");
    }
    absl::StrAppend(&text, ", in the line '", unread.line, "'");
    if (reader_.last()) {
      absl::StrAppend(&text, "; the value before it, ", reader_.last()->metrics.at(metric),
                      ", is not taken as the result");
    }
    if (!is_null) {
      absl::StrAppend(&text, "; let the program print {\"", metric,
                      "\": 0.5} as its last such line");
    }
    return Failed{
        .failure_class = is_null ? FailureClass::kDiverged : FailureClass::kBadConfiguration,
        .message = std::move(text)};
  }

  std::string WithTail(std::string message) const {
    const std::string tail = reader_.Tail();
    if (tail.empty()) return absl::StrCat(message, "; it printed nothing");
    return absl::StrCat(message, kLastOutput, "\n", tail);
  }

  std::optional<TrialOutcome> Stopped() const {
    if (*stop_reason_ != "pruned" && *stop_reason_ != "time limit") return std::nullopt;
    StoppedByPruner pruned;
    if (reader_.last()) {
      pruned.step = reader_.last()->step;
      pruned.metrics = reader_.last()->metrics;
    }
    return pruned;
  }

  // What came, with the objective's metric or without; the error says what is wrong with the file.
  absl::StatusOr<Metrics> Result() const {
    if (metrics_file_.empty()) {
      return reader_.last() ? reader_.last()->metrics : reader_.other_metrics();
    }
    if (!metrics_file_is_new_) return absl::NotFoundError("which it has not written");
    HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(metrics_file_));
    if (const std::optional<Metrics> metrics = ParseMetrics(text, job_.task.objective.metric)) {
      return *metrics;
    }
    return absl::InvalidArgumentError(absl::StrCat("got ", DescribeJson(text)));
  }

  TrialOutcome WithoutResult(const absl::StatusOr<Metrics>& metrics) const {
    const std::string& metric = job_.task.objective.metric;
    std::string text = absl::StrCat("the program exited with status 0 without the metric ", metric);
    if (metrics_file_.empty()) {
      absl::StrAppend(&text, ": expected a line such as {\"", metric,
                      "\": 0.5}, or one that --metric-pattern finds");
    } else {
      absl::StrAppend(&text, ": expected {\"", metric, "\": 0.5} in ", metrics_file_);
    }
    if (!metrics.ok()) absl::StrAppend(&text, ", ", metrics.status().message());
    if (metrics.ok() && !metrics->empty()) {
      absl::StrAppend(&text, "; got ",
                      absl::StrJoin(*metrics, ", ", [](std::string* out, const auto& entry) {
                        out->append(entry.first);
                      }));
    }
    return Failed{.failure_class = FailureClass::kBadConfiguration,
                  .message = WithTail(std::move(text))};
  }

  TrialOutcome RanOut(OomKind kind, std::string message) const {
    OutOfMemory oom;
    oom.kind = kind;
    oom.peak = peak();
    oom.limit = job_.task.limit;
    oom.step = reader_.last() ? reader_.last()->step : 0;
    oom.plan = plan_;
    oom.message = std::move(message);
    oom.traceback = reader_.Tail();
    return oom;
  }

  const CommandOptions& options_;
  const TrainerJob& job_;
  const MemoryPlan plan_;
  std::optional<CardWatch> card_;
  EventSink& events_;
  StopSource& stop_;
  MetricReader reader_;
  std::string metrics_file_;
  bool metrics_file_is_new_ = false;
  std::optional<std::string> stop_reason_;
  RunExit exit_;
  Bytes peak_;
  bool over_limit_ = false;
  std::string cannot_start_;
};

}  // namespace

CommandEnd RunCommand(const CommandOptions& options, const TrainerJob& job, EventSink& events,
                      StopSource& stop, GpuProbe* probe, const std::string& card) {
  CommandEnd end;
  MemoryPlan plan = job.task.plan;
  MemoryReport& memory = end.message.memory;
  memory.limit = job.task.limit;
  Bytes& peak = job.device == "cpu" ? memory.live_peak : memory.device_peak;
  for (;;) {
    CommandRun run(options, job, plan, WatchCard(probe, card), events, stop);
    end.message.outcome = run.Run();
    end.message.final_plan = plan;
    peak = std::max(peak, run.peak());
    const auto* const oom =
        end.message.outcome ? std::get_if<OutOfMemory>(&*end.message.outcome) : nullptr;
    if (oom == nullptr) {
      const bool failed =
          end.message.outcome && std::holds_alternative<Failed>(*end.message.outcome);
      end.signal = failed ? run.signal() : 0;
      end.cannot_start = run.cannot_start();
      return end;
    }
    ++memory.num_ooms;
    events.Send(MemoryMessage{.stage = "OOM Error",
                              .peak = run.peak(),
                              .predicted = job.task.predicted,
                              .step = oom->step});
    const bool may_plan = options.Plans() && job.task.memory.policy == MemoryPolicy::kPlan;
    if (!may_plan || plan.micro_batch <= 1 || run.stopped()) return end;
    plan.micro_batch /= 2;
    ++memory.num_replans;
    events.Send(MemoryMessage{.stage = "replan", .plan = plan});
  }
}

}  // namespace hpo::command
