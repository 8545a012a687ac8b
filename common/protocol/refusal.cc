#include "common/protocol/refusal.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

constexpr char kPayload[] = "hpo/refusal";

}  // namespace

absl::Status WithRefusal(absl::Status status, const Refusal& refusal) {
  // The reason's number, then the database.
  status.SetPayload(
      kPayload, absl::Cord(absl::StrCat(static_cast<int>(refusal.reason), " ", refusal.database)));
  return status;
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  const size_t space = text.find(' ');
  int reason = 0;
  if (space == std::string::npos || !absl::SimpleAtoi(text.substr(0, space), &reason)) {
    return std::nullopt;
  }
  return Refusal{static_cast<RefusalReason>(reason), text.substr(space + 1)};
}

}  // namespace hpo
