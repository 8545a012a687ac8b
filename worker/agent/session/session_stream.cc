#include "worker/agent/session/session_stream.h"

#include "common/base/clock.h"
#include "grpcpp/grpcpp.h"

namespace hpo::agent {
namespace {

// A stream that lasted so long was open.
constexpr absl::Duration kShortest = absl::Seconds(1);

bool IsRefusal(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNIMPLEMENTED || code == grpc::StatusCode::NOT_FOUND;
}

}  // namespace

// One stream, from its start until gRPC has let go of it.
class SessionStream::Call final : public grpc::ClientReadReactor<v1::AttendResponse> {
 public:
  Call(SessionStream& owner, const std::string& session) : owner_(owner) {
    request_.set_session(session);
    context_.set_wait_for_ready(true);
  }
  void Start(v1::WorkerService::Stub& stub) {
    stub.async()->Attend(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override {
    if (ok) StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    owner_.Ended(SystemClock().Monotonic() - started_, IsRefusal(status.error_code()));
  }
  const std::string& session() const { return request_.session(); }

 private:
  SessionStream& owner_;
  const absl::Duration started_ = SystemClock().Monotonic();
  grpc::ClientContext context_;
  v1::AttendRequest request_;
  v1::AttendResponse response_;
};

SessionStream::SessionStream(v1::WorkerService::Stub& stub) : stub_(stub) {}

SessionStream::~SessionStream() {
  absl::MutexLock lock(&mutex_);
  ending_ = true;
  if (call_ != nullptr) call_->Cancel();
  const auto over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return call_ == nullptr; };
  mutex_.Await(absl::Condition(&over));
}

void SessionStream::Keep(const std::string& session) {
  absl::MutexLock lock(&mutex_);
  if (session != session_) {
    session_ = session;
    refused_ = false;
    // Its end opens that of the new session.
    if (call_ != nullptr) call_->Cancel();
  }
  if (call_ == nullptr && !refused_) OpenLocked();
}

void SessionStream::OpenLocked() {
  call_ = std::make_unique<Call>(*this, session_);
  call_->Start(stub_);
}

void SessionStream::Ended(absl::Duration lasted, bool refused) {
  absl::MutexLock lock(&mutex_);
  refused_ = refused && call_->session() == session_;
  // While the lock is held: whoever cancels it finds it whole or finds none.
  call_.reset();
  if (!ending_ && !refused_ && lasted >= kShortest) OpenLocked();
}

}  // namespace hpo::agent
