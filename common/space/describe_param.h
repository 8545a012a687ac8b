// Parameters in messages that refuse them.
#pragma once

#include <string>

#include "common/space/params.h"

namespace hpo {

// As FormatParam, but a string is called so: `the string "true"` where true was expected.
std::string DescribeParam(const ParamValue& value);

}  // namespace hpo
