#include "common/base/version.h"

namespace hpo {

absl::string_view Version() { return HPO_VERSION; }

}  // namespace hpo
