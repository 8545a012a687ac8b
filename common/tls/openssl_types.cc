// Tested by tests/common/tls/identity_test.cc.
#include "common/tls/openssl_types.h"

#include <openssl/err.h>
#include <pthread.h>
#include <signal.h>

namespace hpo::tls {

std::string TakeOpensslError() {
  const unsigned long first = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's own type
  ERR_clear_error();
  const char* const reason = first == 0 ? nullptr : ERR_reason_error_string(first);
  return reason == nullptr ? "no further reason" : reason;
}

void BlockBrokenPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace hpo::tls
