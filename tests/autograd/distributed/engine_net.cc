// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/autograd/distributed/engine_net.h"

#include <chrono>

namespace baton::dist {
namespace {

using std::chrono::milliseconds;

}  // namespace

rpc::WorkerInfo Worker(const std::string& name, uint64_t incarnation) {
  rpc::WorkerInfo worker;
  worker.name = name;
  worker.incarnation = incarnation;
  return worker;
}

ScopeNote NoteOf(const ContextId& context) {
  ScopeNote note;
  note.context = context;
  return note;
}

bool Eventually(const std::function<bool()>& holds) {
  Promise<void> never;
  for (int attempt = 0; attempt < 500 && !holds(); ++attempt)
    never.future().Await(milliseconds(10)).IgnoreError();
  return holds();
}

Future<Marking> NetPeers::Mark(const std::string& to, const MarkRequest& r) {
  ++net_->marks;
  return net_->Post<Marking>(
      to, [self = self_, r](Engine& e) { return e.OnMark(self, r); });
}

Future<WantedPlaces> NetPeers::Want(const std::string& to,
                                    const WantRequest& r) {
  return net_->Post<WantedPlaces>(to, [self = self_, r](Engine& e) {
    const auto list = r.parameters.LocalValue();
    return ReadyFuture<WantedPlaces>(list.ok() ? e.OnWant(self, r.pass, **list)
                                               : list.status());
  });
}

Future<void> NetPeers::Gradient(const std::string& to, const GradientMessage& m,
                                milliseconds) {
  if (net_->LosesGradientsTo(to)) return net_->lost.future();
  return net_->Post<void>(to, [self = self_, m](Engine& e) {
    return ReadyFuture<void>(e.OnGradient(self, m));
  });
}

// Where the answer would never come its deadline passes at once.
Future<std::vector<Tensor>> NetPeers::Finish(const std::string& to,
                                             const FinishRequest& r) {
  if (net_->LosesGradientsTo(to)) {
    return ReadyFuture<std::vector<Tensor>>(
        absl::DeadlineExceededError("no answer"));
  }
  return net_->Post<std::vector<Tensor>>(
      to, [self = self_, r](Engine& e) { return e.OnFinish(self, r); });
}

Future<std::string> NetPeers::Abort(const std::string& to, const ContextId& c,
                                    PassId p, const absl::Status& why,
                                    milliseconds) {
  return net_->Post<std::string>(
      to, [c, p, why](Engine& e) { return e.OnAbort(c, p, why); });
}

Future<void> NetPeers::MoveToGrad(const std::string& to, const ContextId& c,
                                  uint64_t number) {
  return net_->Post<void>(to, [self = self_, c, number](Engine& e) {
    return e.OnMove(self, c, number);
  });
}

Future<void> NetPeers::Release(const std::string& to, const ContextId& c,
                               const std::string& why) {
  return net_->Post<void>(to, [self = self_, c, why](Engine& e) {
    return e.OnRelease(self, c, why);
  });
}

Future<void> NetPeers::Join(const ContextId& c) {
  ++net_->joins;
  if (net_->Parts(self_, c.root))
    return ReadyFuture<void>(absl::UnavailableError("no way there"));
  return net_->Post<void>(c.root, [self = self_, c](Engine& e) {
    return ReadyFuture<void>(e.OnJoin(self, c));
  });
}

}  // namespace baton::dist
