// The trainer's log, for code that sees torch: torch's headers bring their own fmt, which clashes
// with spdlog's. Lines go where common/base/log.h says.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "worker/channel/event_sink.h"

namespace hpo::trainer {

// To the log as "Trial 42 - TEXT", and to the supervisor.
void TellInfo(EventSink& events, TrialNumber trial, const std::string& text);
void TellWarning(EventSink& events, TrialNumber trial, const std::string& text);

void LogInfo(const std::string& line);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

}  // namespace hpo::trainer
