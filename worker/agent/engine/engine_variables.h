// The environment that an engine gave the worker.
#pragma once

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace hpo::agent {

// The value of a variable; nullopt: it is not set.
using EngineVariables = std::function<std::optional<std::string>(const char* name)>;

inline std::optional<std::string> OwnVariable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

}  // namespace hpo::agent
