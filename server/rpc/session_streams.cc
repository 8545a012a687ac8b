#include "server/rpc/session_streams.h"

#include <utility>

#include "proto/convert/grpc_status.h"

namespace hpo::server {
namespace {

grpc::Status ServerEnds() {
  return {grpc::StatusCode::UNAVAILABLE, "hpo-server is shutting down; try again soon"};
}

// Ends at once.
class RefusedStream final : public SessionStreams::Reactor {
 public:
  explicit RefusedStream(const grpc::Status& why) { Finish(why); }
  void OnDone() override { delete this; }
};

}  // namespace

class SessionStreams::Stream final : public SessionStreams::Reactor {
 public:
  Stream(SessionStreams& owner, std::string session) : owner_(owner), session_(std::move(session)) {
    // The client learns that the stream is open.
    StartSendInitialMetadata();
  }
  void OnCancel() override { owner_.Closed(session_, this); }
  void OnDone() override { delete this; }

 private:
  SessionStreams& owner_;
  const std::string session_;
};

SessionStreams::Reactor* SessionStreams::Refuse(const absl::Status& why) {
  return new RefusedStream(ToGrpc(why));
}

SessionStreams::Reactor* SessionStreams::Open(const std::string& session) {
  if (const absl::Status there = api_.Attend(session); !there.ok()) return Refuse(there);
  Stream* older = nullptr;
  Stream* stream = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return new RefusedStream(ServerEnds());
    stream = new Stream(*this, session);
    older = std::exchange(streams_[session], stream);
  }
  if (older != nullptr) {
    older->Finish({grpc::StatusCode::ABORTED, "a newer stream of the session is open"});
  }
  return stream;
}

void SessionStreams::EndAll() {
  std::map<std::string, Stream*> streams;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    streams.swap(streams_);
  }
  for (const auto& [session, stream] : streams) stream->Finish(ServerEnds());
}

bool SessionStreams::Take(const std::string& session, const Stream* stream) {
  absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(session);
  if (found == streams_.end() || found->second != stream) return false;
  streams_.erase(found);
  return true;
}

void SessionStreams::Closed(const std::string& session, Stream* stream) {
  if (!Take(session, stream)) return;
  api_.StopAttending(session);
  stream->Finish(grpc::Status::CANCELLED);
}

}  // namespace hpo::server
