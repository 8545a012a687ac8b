#include "server/health_log.h"

#include "absl/strings/str_cat.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kSayAgain = absl::Minutes(1);

std::string WholeSeconds(absl::Duration time) {
  return absl::FormatDuration(absl::Trunc(time, absl::Seconds(1)));
}

}  // namespace

std::optional<std::string> HealthLog::Look(const std::string& trouble, absl::Duration now) {
  if (trouble.empty()) {
    if (!troubled_) return std::nullopt;
    troubled_ = false;
    return absl::StrCat("works again, after ", WholeSeconds(now - since_));
  }
  const bool began = !troubled_;
  if (began) since_ = now;
  troubled_ = true;
  if (!began && now - said_at_ < kSayAgain) return std::nullopt;
  said_at_ = now;
  const std::string how_long =
      began ? "" : absl::StrCat(" (since ", WholeSeconds(now - since_), ")");
  return absl::StrCat("cannot use the database", how_long, ", and tries again: ", trouble);
}

}  // namespace hpo::server
