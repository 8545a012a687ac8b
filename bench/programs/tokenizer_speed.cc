// Times our tokenizers for bench/tokenizer_speed: tokenizer_speed FOLDER TEXTS (JSON lines with
// text). For each line on standard input, encodes every text once and prints one line of JSON:
// seconds, and how many ids came out.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "common/files/read_file.h"
#include "nlohmann/json.hpp"
#include "worker/text/tokenizers/make_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo {
namespace {

std::vector<std::string> ReadTexts(const std::string& content) {
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = content.find('\n', begin);
    texts.push_back(nlohmann::json::parse(content.substr(begin, end - begin)).at("text"));
    begin = end == std::string::npos ? content.size() : end + 1;
  }
  return texts;
}

nlohmann::json TimePass(const text::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  size_t ids = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& text : texts) {
    ids += tokenizer.Encode(text, std::nullopt, text::kNoTruncation).ids.size();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {{"seconds", taken.count()}, {"ids", ids}};
}

int Run(const std::string& folder, const std::string& texts_path) {
  const auto tokenizer = text::MakeTokenizerOfFolder(folder);
  const auto content = ReadFile(texts_path);
  for (const absl::Status& status : {tokenizer.status(), content.status()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "tokenizer_speed: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  const std::vector<std::string> texts = ReadTexts(*content);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << TimePass(**tokenizer, texts).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tokenizer_speed FOLDER TEXTS\n");
    return 64;
  }
  return hpo::Run(argv[1], argv[2]);
}
