// Owners of OpenSSL's objects, and its errors as text.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace hpo::tls {

// `free` as a deleter.
template <auto free>
struct Freed {
  void operator()(auto* object) const { free(object); }
};

using SslContextPtr = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Freed<SSL_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

// The thread's first queued error of OpenSSL in words, "no further reason" if there is none.
// Empties the queue.
std::string TakeOpensslError();

// To be called by each thread that writes to TLS connections: OpenSSL writes without MSG_NOSIGNAL,
// and a peer that has gone must not end the process.
void BlockBrokenPipeSignal();

}  // namespace hpo::tls
