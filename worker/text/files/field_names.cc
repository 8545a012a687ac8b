#include "worker/text/files/field_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hpo::text {

std::string FirstNames(const std::vector<std::string>& names) {
  constexpr size_t kMaxListed = 8;
  constexpr size_t kMaxBytes = 120;
  std::string list;
  size_t listed = 0;
  while (listed < std::min(names.size(), kMaxListed) && list.size() < kMaxBytes) {
    absl::StrAppend(&list, listed == 0 ? "" : ", ", names[listed]);
    ++listed;
  }
  if (listed < names.size()) absl::StrAppend(&list, ", ... (", names.size(), " in all)");
  return list;
}

}  // namespace hpo::text
