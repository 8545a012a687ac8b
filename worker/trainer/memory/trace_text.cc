#include "worker/trainer/memory/trace_text.h"

#include "absl/strings/str_cat.h"

namespace hpo::trainer {
namespace {

constexpr absl::string_view kFirstLine = "hpo-trace 1";

std::string FormatLine(const AllocatorEvent& event) {
  const std::string kind(1, event.kind);
  switch (event.kind) {
    case '+':
      return absl::StrCat(kind, " ", event.block, " ", event.bytes,
                          event.stream != 0 ? absl::StrCat(" ", event.stream) : "");
    case '-':
      return absl::StrCat(kind, " ", event.block);
    default:
      return absl::StrCat(kind, " ", event.bytes);
  }
}

}  // namespace

std::string FormatTrace(const std::vector<AllocatorEvent>& events,
                        const std::vector<std::string>& about) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const std::string& line : about) absl::StrAppend(&text, "# ", line, "\n");
  for (const AllocatorEvent& event : events) absl::StrAppend(&text, FormatLine(event), "\n");
  return text;
}

}  // namespace hpo::trainer
