// SHA-256 digests (FIPS 180-4, by OpenSSL's libcrypto), as lower-case hexadecimal of 64 characters:
// how data sets, models and vocabularies are told apart without being sent anywhere.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace hpo {

// A digest over bytes that arrive in pieces. One thread at a time; movable, not copyable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&& other) noexcept;
  Sha256& operator=(Sha256&& other) noexcept;

  void Update(absl::string_view bytes);

  // The digest of everything so far. Ends the object's use: call once, and nothing after it.
  std::string HexDigest();

 private:
  evp_md_ctx_st* context_;
};

std::string Sha256Hex(absl::string_view bytes);

// Digest of a file's content, read in pieces of 1 MiB, after each of which `stopped`, where given,
// is asked.
//   Cancelled         `stopped` returned true
//   NotFound          no such file
//   PermissionDenied  not readable
//   InvalidArgument   it is a folder, or no name of a file
//   Unavailable       reading failed half way, or this machine lacks something at the moment
absl::StatusOr<std::string> Sha256File(const std::string& path,
                                       const std::function<bool()>& stopped = nullptr);

}  // namespace hpo
