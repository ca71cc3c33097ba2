// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/free_with.h"
#include "core/mutex.h"
#include "rpc/channels/tcp_socket.h"

namespace baton::rpc {
namespace {

using SslContext = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using Ssl = std::unique_ptr<SSL, FreeWith<SSL_free>>;

// Both use SHA-256, as the pre-shared key requires.
constexpr char kCiphers[] =
    "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr char kIdentity[] = "baton tensors";
constexpr size_t kSecretBytes = 32;
// So many bytes are read from and written to the kernel at once: many records,
// few enough for a core's own cache.
constexpr size_t kReadAhead = size_t{64} << 10;
constexpr size_t kWriteAtOnce = size_t{128} << 10;
constexpr size_t kMostInRecord = SSL3_RT_MAX_PLAIN_LENGTH;

const unsigned char* IdentityBytes() {
  return reinterpret_cast<const unsigned char*>(kIdentity);
}

// The socket as OpenSSL sees it. OpenSSL's own one raises SIGPIPE, and a
// library must not change signals; it also gives each record to the kernel by
// itself, which takes longer than to encrypt the record.
class RecordSocket {
 public:
  explicit RecordSocket(int socket) : socket_(socket) {}

  // Whether Write may keep bytes until more are there. The last record must be
  // written without that.
  void set_gathers(bool gathers) { gathers_ = gathers; }
  // The results are those of send and recv.
  ssize_t Write(const char* data, size_t bytes) {
    if (!gathers_ || waiting_.size() + bytes > kWriteAtOnce)
      if (SendWaiting() < 0) return -1;
    if (!gathers_) return Send(data, bytes);
    waiting_.append(data, bytes);
    return static_cast<ssize_t>(bytes);
  }
  ssize_t Read(char* data, size_t bytes) {
    return recv(socket_, data, bytes, MSG_DONTWAIT);
  }

 private:
  ssize_t Send(const char* data, size_t bytes) {
    return send(socket_, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // Returns a negative number if anything still waits, as send says why.
  ssize_t SendWaiting() {
    size_t sent = 0;
    ssize_t result = 0;
    while (result >= 0 && sent < waiting_.size()) {
      result = Send(waiting_.data() + sent, waiting_.size() - sent);
      if (result > 0) sent += static_cast<size_t>(result);
    }
    waiting_.erase(0, sent);
    return result;
  }

  const int socket_;
  bool gathers_ = false;
  std::string waiting_;
};

RecordSocket& SocketOf(BIO* bio) {
  return *static_cast<RecordSocket*>(BIO_get_data(bio));
}
int FinishIo(BIO* bio, ssize_t result, bool reading) {
  BIO_clear_retry_flags(bio);
  if (result < 0 &&
      (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    reading ? BIO_set_retry_read(bio) : BIO_set_retry_write(bio);
  }
  return static_cast<int>(result);
}
int WriteBio(BIO* bio, const char* data, int bytes) {
  return FinishIo(bio, SocketOf(bio).Write(data, static_cast<size_t>(bytes)),
                  /*reading=*/false);
}
int ReadBio(BIO* bio, char* data, int bytes) {
  return FinishIo(bio, SocketOf(bio).Read(data, static_cast<size_t>(bytes)),
                  /*reading=*/true);
}
long ControlBio(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* NewBio(RecordSocket& socket) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
                                    "baton socket");
    BIO_meth_set_write(made, WriteBio);
    BIO_meth_set_read(made, ReadBio);
    BIO_meth_set_ctrl(made, ControlBio);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &socket);
  BIO_set_init(bio, 1);
  return bio;
}

// Takes the oldest error of this thread, and discards the others.
std::string OpenSslError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown" : reason;
}

// Returns the secret as OpenSSL's form of a pre-shared key. Null if that fails.
SSL_SESSION* SessionOf(SSL* ssl, const std::string& secret) {
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const auto* key = reinterpret_cast<const unsigned char*>(secret.data());
  if (SSL_SESSION_set1_master_key(session, key, secret.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kAes128GcmSha256)) ==
          1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
      SSL_SESSION_set1_id_context(session, IdentityBytes(),
                                  sizeof(kIdentity) - 1) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

const std::string& SecretOf(SSL* ssl) {
  return *static_cast<const std::string*>(SSL_get_app_data(ssl));
}

// The client offers the key under its only identity. `hash`, if not null, is
// the one that the server has requested in its retry.
int OfferSecret(SSL* ssl, const EVP_MD* hash, const unsigned char** identity,
                size_t* identity_bytes, SSL_SESSION** session) {
  *session = nullptr;
  if (hash != nullptr && EVP_MD_get_type(hash) != NID_sha256) return 1;
  *identity = IdentityBytes();
  *identity_bytes = sizeof(kIdentity) - 1;
  *session = SessionOf(ssl, SecretOf(ssl));
  return *session != nullptr;
}

int FindSecret(SSL* ssl, const unsigned char* identity, size_t identity_bytes,
               SSL_SESSION** session) {
  *session = nullptr;
  if (identity_bytes != sizeof(kIdentity) - 1 ||
      std::memcmp(identity, kIdentity, identity_bytes) != 0) {
    return 1;
  }
  *session = SessionOf(ssl, SecretOf(ssl));
  return *session != nullptr;
}

SslContext MakeContext() {
  SslContext context(SSL_CTX_new(TLS_method()));
  if (context == nullptr ||
      SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), kCiphers) != 1) {
    return nullptr;
  }
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  // Only data follows the handshake, so that a reader never has to write.
  SSL_CTX_set_num_tickets(context.get(), 0);
  // OpenSSL requires a server to name the context of its sessions, and a
  // pre-shared key counts as a session.
  SSL_CTX_set_session_id_context(context.get(), IdentityBytes(),
                                 sizeof(kIdentity) - 1);
  // Refuses a server that has a certificate instead of the secret.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kReadAhead);
  return context;
}

class TlsStream final : public TcpStream {
 public:
  TlsStream(Fd socket, const TlsSetup& setup)
      : TcpStream(std::move(socket)),
        setup_(setup),
        records_(this->socket().get()) {}

  // Must be called once, before the other methods.
  absl::Status SetUp() {
    static SSL_CTX* const context = MakeContext().release();
    MutexLock lock(mutex_);
    if (context != nullptr) ssl_.reset(SSL_new(context));
    BIO* const bio = ssl_ == nullptr ? nullptr : NewBio(records_);
    if (bio == nullptr) {
      return absl::InternalError(
          absl::StrCat("cannot set up TLS: ", OpenSslError()));
    }
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), const_cast<std::string*>(&setup_.secret));
    if (setup_.client) {
      SSL_set_psk_use_session_callback(ssl_.get(), OfferSecret);
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_psk_find_session_callback(ssl_.get(), FindSecret);
      SSL_set_accept_state(ssl_.get());
    }
    return absl::OkStatus();
  }

  absl::Status Handshake() override {
    MutexLock lock(mutex_);
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) {
      const absl::Status why = WhyLocked(result);
      if (why.ok()) return absl::CancelledError("the handshake is under way");
      return absl::IsUnavailable(why)
                 ? why
                 : absl::PermissionDeniedError(absl::StrCat(
                       "no TLS with who answers there: ", why.message()));
    }
    if (SSL_session_reused(ssl_.get()) != 1)
      return absl::PermissionDeniedError("it does not know the secret");
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Write(std::span<const iovec> parts) override {
    size_t left = 0;
    for (const iovec& part : parts) left += part.iov_len;
    return Move(parts, [this, &left](void* data, size_t bytes, size_t& moved) {
      MutexLock lock(mutex_);
      ERR_clear_error();
      records_.set_gathers(left > kMostInRecord);
      // A record that the socket has not taken keeps its key.
      if (written_ >= setup_.rekey_bytes && !SSL_want_write(ssl_.get())) {
        SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
        written_ = 0;
      }
      const int result = SSL_write_ex(ssl_.get(), data, bytes, &moved);
      if (result != 1) return WhyLocked(result);
      written_ += moved;
      left -= moved;
      return absl::OkStatus();
    });
  }
  absl::StatusOr<size_t> Read(std::span<const iovec> parts) override {
    return Move(parts, [this](void* data, size_t bytes, size_t& moved) {
      MutexLock lock(mutex_);
      ERR_clear_error();
      const int result = SSL_read_ex(ssl_.get(), data, bytes, &moved);
      return result == 1 ? absl::OkStatus() : WhyLocked(result);
    });
  }

 private:
  // Calls `step` until all parts are moved or a step moves nothing. A step
  // moves at most one record, and the lock is free between two steps, so that
  // the other direction goes on meanwhile.
  template <typename Step>
  absl::StatusOr<size_t> Move(std::span<const iovec> parts, Step step) {
    size_t all = 0;
    for (const iovec& part : parts) {
      for (size_t done = 0; done < part.iov_len;) {
        size_t moved = 0;
        const absl::Status status =
            step(static_cast<char*>(part.iov_base) + done, part.iov_len - done,
                 moved);
        if (!status.ok() && all == 0) return status;
        if (!status.ok() || moved == 0) return all;
        done += moved;
        all += moved;
      }
    }
    return all;
  }

  // Why a call failed; OK if it must be repeated when the socket is ready.
  absl::Status WhyLocked(int result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int cause = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return absl::OkStatus();
      case SSL_ERROR_ZERO_RETURN:
        return absl::UnavailableError("it closed the socket");
      case SSL_ERROR_SYSCALL:
        return absl::UnavailableError(
            absl::StrCat("the socket is broken: ", strerror(cause)));
      default:
        return absl::DataLossError(OpenSslError());
    }
  }

  const TlsSetup setup_;
  Mutex mutex_;
  RecordSocket records_ ABSL_GUARDED_BY(mutex_);
  Ssl ssl_ ABSL_GUARDED_BY(mutex_);
  uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // under the present key
};

}  // namespace

absl::StatusOr<std::shared_ptr<TcpStream>> TcpStream::Tls(
    Fd socket, const TlsSetup& setup) {
  if (setup.secret.size() != kSecretBytes)
    return absl::InternalError("the secret of a TLS stream is of 32 bytes");
  auto stream = std::make_shared<TlsStream>(std::move(socket), setup);
  if (absl::Status status = stream->SetUp(); !status.ok()) return status;
  return stream;
}

}  // namespace baton::rpc
