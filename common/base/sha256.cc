#include "common/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/read_file.h"
#include "common/base/status.h"

namespace hpo {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  HPO_CHECK(context_ != nullptr);
  HPO_CHECK(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

Sha256::Sha256(Sha256&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}

Sha256& Sha256::operator=(Sha256&& other) noexcept {
  std::swap(context_, other.context_);
  return *this;
}

void Sha256::Update(absl::string_view bytes) {
  HPO_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::HexDigest() {
  std::array<char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  HPO_CHECK(EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), &size) ==
            1);
  return absl::BytesToHexString(absl::string_view(digest.data(), size));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.HexDigest();
}

absl::StatusOr<std::string> Sha256File(const std::string& path,
                                       const std::function<bool()>& stopped) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(errno, path);
  Sha256 digest;
  std::vector<char> piece(kPieceBytes);
  size_t count = 0;
  while ((count = std::fread(piece.data(), 1, piece.size(), file.get())) > 0) {
    digest.Update(absl::string_view(piece.data(), count));
    if (stopped && stopped()) return absl::CancelledError(path + ": told to stop");
  }
  if (std::ferror(file.get()) != 0) return FileError(errno, path);
  return digest.HexDigest();
}

}  // namespace hpo
