// The streams that sessions hold open (WorkerService.Attend). gRPC calls back when one ends: none
// of them holds a thread. A session has one at most, so there are no more of them than workers.
// Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "hpo/v1/worker.pb.h"
#include "server/api/worker_api.h"

namespace hpo::server {

class SessionStreams {
 public:
  using Reactor = grpc::ServerWriteReactor<v1::AttendResponse>;

  // `api` outlives the streams.
  explicit SessionStreams(WorkerApi& api) : api_(api) {}

  // A stream of the session, which belongs to gRPC; an older one of it ends. One of an unknown
  // session ends with NOT_FOUND, and after EndAll with UNAVAILABLE.
  Reactor* Open(const std::string& session);

  // A stream that ends at once.
  static Reactor* Refuse(const absl::Status& why);

  // The server ends: so do the streams, which is no sign of a lost client. Idempotent.
  void EndAll();

 private:
  class Stream;

  // Takes the stream out, where it is still the session's. Whoever has taken it out finishes it.
  bool Take(const std::string& session, const Stream* stream);
  // The client has gone.
  void Closed(const std::string& session, Stream* stream);

  WorkerApi& api_;
  absl::Mutex mutex_;
  std::map<std::string, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hpo::server
