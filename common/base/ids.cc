#include "common/base/ids.h"

#include <sys/random.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace hpo {

std::string RandomId() {
  std::array<char, 16> bits;
  HPO_CHECK(getrandom(bits.data(), bits.size(), 0) == static_cast<ssize_t>(bits.size()));
  return absl::BytesToHexString(absl::string_view(bits.data(), bits.size()));
}

}  // namespace hpo
