// How a program finds its server: a plaintext address of this machine, or a join string, which
// leads to another one by TLS.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tls/forwarder.h"
#include "common/tls/join_string.h"

namespace hpo::tls {

// Where a join string is from. A file is read again before each connection, so that one with a new
// secret is used without a restart.
class JoinSource {
 public:
  // The value of --join ("hpo1...", or "file:PATH"), else HPO_JOIN, else the file that
  // HPO_JOIN_FILE names; nullopt: none of them is there. What is there is used or is an error:
  // nothing falls back to plaintext.
  //   InvalidArgument, NotFound, PermissionDenied  names the source
  static absl::StatusOr<std::optional<JoinSource>> Find(const std::string& option);

  absl::StatusOr<JoinString> Read() const;

  // "--join", "HPO_JOIN" or "HPO_JOIN_FILE".
  const std::string& name() const { return name_; }
  // Empty: the string itself was given.
  const std::string& file() const { return file_; }

 private:
  JoinSource(std::string name, std::string text, std::string file)
      : name_(std::move(name)), text_(std::move(text)), file_(std::move(file)) {}

  std::string name_;
  std::string text_;  // empty: in the file
  std::string file_;
};

// The words of a command line, copied; in the process' own, which ps shows, the secrets of join
// strings are overwritten.
class PrivateArguments {
 public:
  // As main gets them.
  PrivateArguments(int count, char** arguments);
  PrivateArguments(const PrivateArguments&) = delete;

  int count() const { return static_cast<int>(words_.size()); }
  const char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<const char*> pointers_;  // ends with a null pointer
};

// A server as a client reaches it.
struct ServerRoute {
  std::string shown;                     // for people: "host:50051"
  std::string dialed;                    // for gRPC
  std::unique_ptr<Forwarder> forwarder;  // null: plaintext

  // Why the server cannot be reached, where TLS knows it; OK otherwise.
  absl::Status Trouble() const { return forwarder ? forwarder->status() : absl::OkStatus(); }
};

// The way to `server`, a plaintext address, unless there is a join string. `on_change`: see
// ForwarderOptions.
absl::StatusOr<ServerRoute> FindRoute(const std::optional<JoinSource>& join,
                                      const std::string& server,
                                      std::function<void(const absl::Status&)> on_change = nullptr);

}  // namespace hpo::tls
