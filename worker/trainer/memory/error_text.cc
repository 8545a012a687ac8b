#include "worker/trainer/memory/error_text.h"

#include <c10/util/Exception.h>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hpo::trainer {

std::string DescribeError(const std::exception& error) {
  const auto* const torch_error = dynamic_cast<const c10::Error*>(&error);
  absl::string_view text =
      torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  if (absl::StartsWith(text, "CUDA error: ")) text = text.substr(0, text.find('\n'));
  while (absl::ConsumeSuffix(&text, "\n")) {
  }
  return absl::StrReplaceAll(text, {{"\n", " "}});
}

}  // namespace hpo::trainer
