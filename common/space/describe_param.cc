#include "common/space/describe_param.h"

#include "absl/strings/str_cat.h"

namespace hpo {

std::string DescribeParam(const ParamValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? FormatParam(value) : absl::StrCat("the string \"", *text, "\"");
}

}  // namespace hpo
