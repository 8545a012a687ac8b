// The programs' log: spdlog's default logger, set up once in main. Elsewhere call spdlog::info(...)
// and its siblings directly. Lines go to stderr; stdout is for results.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo {

// Replaces spdlog's default logger by one that writes to stderr, safe from any thread.
// `level` is "trace", "debug", "info", "warn", "error" or "off".
//   text  2026-11-21T11:07:27.123Z info  message
//   json  {"time":"2026-11-21T11:07:27.123Z","level":"info","message":"..."}, one object per line
// Call before other threads log.
//   InvalidArgument  another level; lists those there are
absl::Status InitLog(absl::string_view level, bool json);

}  // namespace hpo
