#include "common/files/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/status.h"
#include "common/files/read_file.h"

namespace hpo {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

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
  Sha256 digest;
  HPO_RETURN_IF_ERROR(ReadFileInPieces(path, kPieceBytes, [&](absl::string_view piece) {
    digest.Update(piece);
    return stopped && stopped() ? absl::CancelledError(path + ": told to stop") : absl::OkStatus();
  }));
  return digest.HexDigest();
}

}  // namespace hpo
