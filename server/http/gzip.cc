#include "server/http/gzip.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

constexpr int kWithGzipHeader = 15 + 16;  // of the window's bits
constexpr int kDefaultMemory = 8;

}  // namespace

std::string Gzip(absl::string_view text, int level) {
  z_stream stream{};
  HPO_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kWithGzipHeader, kDefaultMemory,
                         Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  HPO_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

bool AcceptsGzip(absl::string_view accept_encoding) {
  for (const absl::string_view one : absl::StrSplit(accept_encoding, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(one, absl::MaxSplits(';', 1));
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first), "gzip")) continue;
    absl::string_view weight = absl::StripAsciiWhitespace(parts.second);
    double value = 1.0;
    return !absl::ConsumePrefix(&weight, "q=") || !absl::SimpleAtod(weight, &value) || value > 0.0;
  }
  return false;
}

}  // namespace hpo::server
