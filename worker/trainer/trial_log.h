// The trainer's log, for code that sees torch: torch's headers bring their own fmt, which spdlog's
// do not go together with. Lines go where common/log.h says.
#pragma once

#include <string>

namespace hpo {

void LogInfo(const std::string& line);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

}  // namespace hpo
