#include "worker/trainer/base/trial_log.h"

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace hpo::trainer {

namespace {

std::string LineOf(TrialNumber trial, const std::string& text) {
  return absl::StrCat("Trial ", trial.value, " - ", text);
}

}  // namespace

void TellInfo(EventSink& events, TrialNumber trial, const std::string& text) {
  LogInfo(LineOf(trial, text));
  events.Send(LogMessage{.level = "info", .text = text});
}

void TellWarning(EventSink& events, TrialNumber trial, const std::string& text) {
  LogWarning(LineOf(trial, text));
  events.Send(LogMessage{.level = "warning", .text = text});
}

void LogInfo(const std::string& line) { spdlog::info("{}", line); }
void LogWarning(const std::string& line) { spdlog::warn("{}", line); }
void LogError(const std::string& line) { spdlog::error("{}", line); }

}  // namespace hpo::trainer
