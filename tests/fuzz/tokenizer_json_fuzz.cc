// Any bytes as a tokenizer.json, a text and its pair (separated by NULs): refused, or ids that the
// vocabulary has. Seeds: tests/golden/tokenizers/json-*/tokenizer.json.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/check_encoding.h"
#include "worker/text/tokenizers/families/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<absl::string_view> fields = absl::StrSplit(input, absl::MaxSplits('\0', 2));
  fields.resize(3);
  const auto tokenizer = hpo::text::ParseTokenizerJson(fields[0], "tokenizer.json", {}, 0);
  if (tokenizer.ok()) hpo::CheckEncodings(**tokenizer, fields[1], fields[2]);
  return 0;
}
