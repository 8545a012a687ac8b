// Calls of AdminService between asks of a worker: requests of any bytes, and backups that are given
// up after some pieces; one that is whole opens as a database.
#include <cstddef>
#include <cstdint>
#include <fstream>

#include "tests/fuzz/fuzzed_server.h"

namespace {

hpo::FuzzedServer& Server() {
  static auto* const kServer = new hpo::FuzzedServer;
  return *kServer;
}

void Acquire(hpo::FuzzBytes& bytes) {
  grpc::ServerContext context;
  hpo::v1::AcquireTrialRequest request;
  request.set_session(Server().Register());
  request.set_capacity_bytes(static_cast<int64_t>(bytes.Below(1 << 16)) << 20);
  hpo::v1::AcquireTrialResponse response;
  hpo::FuzzedServer::CheckAnswer(Server().workers().AcquireTrial(&context, &request, &response));
}

void GetServer(hpo::FuzzBytes& bytes) {
  std::string sent;
  for (uint64_t left = bytes.Below(32); left > 0; --left) {
    sent += static_cast<char>(bytes.Below(256));
  }
  hpo::v1::GetServerRequest request;
  if (!request.ParseFromString(sent)) return;
  grpc::ServerContext context;
  hpo::v1::GetServerResponse response;
  HPO_CHECK(Server().admin().GetServer(&context, &request, &response).ok());
  HPO_CHECK(response.trouble().empty() && response.damage().empty());
}

void BackUp(hpo::FuzzBytes& bytes) {
  const std::string copy = Server().folder() / "copy.db";
  std::ofstream file(copy, std::ios::binary | std::ios::trunc);
  int64_t received = 0;
  uint64_t pieces_left = bytes.Below(4) == 0 ? bytes.Below(2) : UINT64_MAX;
  const auto end = Server().admin_api().BackUp([&](absl::string_view piece) {
    if (pieces_left-- == 0) return false;
    received += static_cast<int64_t>(piece.size());
    return static_cast<bool>(file.write(piece.data(), static_cast<std::streamsize>(piece.size())));
  });
  file.close();
  HPO_CHECK(end.ok() || absl::IsCancelled(end.status()));
  if (!end.ok()) return;
  HPO_CHECK(end->size == received && end->sha256.size() == 64);
  HPO_CHECK(hpo::server::Store::Open(copy).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hpo::FuzzBytes bytes(data, size);
  for (int call = 0; call < 8 && !bytes.empty(); ++call) {
    switch (bytes.Below(3)) {
      case 0:
        Acquire(bytes);
        break;
      case 1:
        GetServer(bytes);
        break;
      default:
        BackUp(bytes);
    }
  }
  Server().InputDone();
  return 0;
}
