// The stream that a worker's session holds open (WorkerService.Attend), so that the server learns
// of the worker's end by that of the connection. When it ends it is opened again at once, which
// waits for a server that is away. Thread-safe; no thread of its own.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "hpo/v1/worker.grpc.pb.h"

namespace hpo::agent {

class SessionStream {
 public:
  // `stub` outlives the stream.
  explicit SessionStream(v1::WorkerService::Stub& stub);
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;
  // Ends it.
  ~SessionStream();

  // Holds a stream of `session` open from now on, in place of one of another session. To be called
  // with each heartbeat: what ended within a second, as with a proxy that lets no stream through,
  // is not opened again before. A server that refuses the session's, as an older one does, is not
  // asked again for the same session.
  void Keep(const std::string& session);

 private:
  class Call;

  void OpenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The stream is over, and gRPC has let go of it.
  void Ended(absl::Duration lasted, bool refused);

  v1::WorkerService::Stub& stub_;
  absl::Mutex mutex_;
  std::string session_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);  // nullptr: none is open
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hpo::agent
