#include "cli/render/wrapped_output.h"

#include "absl/strings/match.h"
#include "common/command_line/wrapped_line.h"

namespace hpo::cli {

WrappedOutput::int_type WrappedOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return sync() == 0 ? 0 : character;
  const char c = traits_type::to_char_type(character);
  return xsputn(&c, 1) == 1 ? character : traits_type::eof();
}

std::streamsize WrappedOutput::xsputn(const char* text, std::streamsize size) {
  absl::string_view rest(text, static_cast<size_t>(size));
  for (size_t end = rest.find('\n'); end != absl::string_view::npos; end = rest.find('\n')) {
    line_.append(rest.data(), end);
    PassOnLine();
    rest.remove_prefix(end + 1);
  }
  line_.append(rest.data(), rest.size());
  return to_.good() ? size : 0;
}

int WrappedOutput::sync() {
  is_continued_ = is_continued_ || !line_.empty();
  to_ << line_ << std::flush;
  line_.clear();
  return to_.good() ? 0 : -1;
}

void WrappedOutput::PassOnLine() {
  // A carriage return begins the line again.
  const bool is_whole = !is_continued_ || absl::StartsWith(line_, "\r");
  to_ << (is_whole ? WrappedLine(line_, columns_) : line_) << '\n';
  line_.clear();
  is_continued_ = false;
}

}  // namespace hpo::cli
