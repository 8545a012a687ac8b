#include "server/api/admin_api.h"

#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/files/sha256.h"

namespace hpo::server {
namespace {

constexpr size_t kBackupPiece = size_t{1} << 20;

}  // namespace

ServerStatus AdminApi::GetServer() const {
  const Store& store = *scheduler_.state().store;
  absl::MutexLock lock(&mutex_);
  return ServerStatus{.version = std::string(Version()),
                      .database = store.path(),
                      .epoch = scheduler_.state().epoch.number,
                      .trouble = store.trouble(),
                      .damage = store.damage(),
                      .page = page_};
}

absl::StatusOr<TokenIssuer*> AdminApi::Issuer() const {
  if (TokenIssuer* const issuer = issuer_) return issuer;
  return absl::FailedPreconditionError(
      "this server listens without TLS, so that it has no tokens; start it with --listen "
      "0.0.0.0:50051 to let other machines in");
}

absl::StatusOr<AdminApi::BackUpEnd> AdminApi::BackUp(
    const std::function<bool(absl::string_view)>& sink) const {
  BackUpEnd end;
  Sha256 digest;
  const auto send = [&](const std::string& path) -> absl::Status {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> piece(kBackupPiece);
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
      const absl::string_view bytes(piece.data(), static_cast<size_t>(file.gcount()));
      digest.Update(bytes);
      end.size += static_cast<int64_t>(bytes.size());
      if (!sink(bytes)) return absl::CancelledError("the caller of the backup has gone");
    }
    if (file.eof() && end.size > 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot read the copy ", path));
  };
  HPO_RETURN_IF_ERROR(scheduler_.state().store->WithCopy(send));
  end.sha256 = digest.HexDigest();
  return end;
}

}  // namespace hpo::server
