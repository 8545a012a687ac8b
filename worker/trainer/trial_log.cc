#include "worker/trainer/trial_log.h"

#include "spdlog/spdlog.h"

namespace hpo {

void LogInfo(const std::string& line) { spdlog::info("{}", line); }
void LogWarning(const std::string& line) { spdlog::warn("{}", line); }
void LogError(const std::string& line) { spdlog::error("{}", line); }

}  // namespace hpo
