#include "common/study.h"

namespace hpo {

absl::string_view Name(Direction direction) {
  return direction == Direction::kMinimize ? "minimize" : "maximize";
}

std::optional<Direction> ParseDirection(absl::string_view name) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    if (name == Name(direction)) return direction;
  }
  return std::nullopt;
}

absl::string_view Name(MemoryPolicy policy) {
  switch (policy) {
    case MemoryPolicy::kPlan:
      return "plan";
    case MemoryPolicy::kStrict:
      return "strict";
    case MemoryPolicy::kOff:
      return "off";
  }
  return "";
}

std::optional<MemoryPolicy> ParseMemoryPolicy(absl::string_view name) {
  for (const MemoryPolicy policy :
       {MemoryPolicy::kPlan, MemoryPolicy::kStrict, MemoryPolicy::kOff}) {
    if (name == Name(policy)) return policy;
  }
  return std::nullopt;
}

}  // namespace hpo
