// Copyright 2026 The Baton Authors
// SPDX-License-Identifier: Apache-2.0

#include "core/cpu/rnn.h"

#include "core/cpu/rnn_direction.h"

// `saved` contains, for each layer, its output (except the last layer's) and,
// for each of its directions, the gates and the cell states (LSTM) or the sums
// over h (GRU).
namespace baton::cpu {
namespace {

using ops::RnnCell;
using ops::RnnGradients;
using ops::RnnInputs;
using ops::RnnOptions;
using ops::RnnResult;

struct Kept {
  Tensor gates, state;
};

// One call, with all its arrays dense.
template <typename T>
class Run {
 public:
  Run(const RnnInputs& in, const RnnOptions& options)
      : in_(in),
        options_(options),
        directions_(options.bidirectional ? 2 : 1),
        steps_(in.x.dim(0)),
        batch_(in.x.dim(1)),
        hidden_(in.h.dim(2)) {
    in_.x = in.x.Contiguous();
    in_.h = in.h.Contiguous();
    if (is_lstm()) in_.c = in.c.Contiguous();
    for (Tensor& weight : in_.weights)
      if (weight.defined()) weight = weight.Contiguous();
  }

  RnnResult Forward(bool keep) {
    RnnResult result;
    result.h = Tensor::EmptyLike(in_.h);
    if (is_lstm()) result.c = Tensor::EmptyLike(in_.c);
    Tensor x = in_.x;
    for (int64_t layer = 0; layer < options_.layers; ++layer) {
      const Tensor y = Empty({steps_, batch_, directions_ * hidden_});
      for (int64_t d = 0; d < directions_; ++d) {
        const Kept kept = MakeKept();
        RnnDirection<T> direction = Direction(layer, d, x, y, kept);
        direction.h_last = State(result.h, layer, d);
        if (is_lstm()) direction.c_last = State(result.c, layer, d);
        direction.Forward();
        if (!keep) continue;
        result.saved.push_back(kept.gates);
        result.saved.push_back(kept.state);
      }
      if (keep && layer + 1 < options_.layers) result.saved.push_back(y);
      x = y;
    }
    result.y = x;
    return result;
  }

  RnnGradients Backward(const RnnResult& result, Tensor dy, const Tensor& dh,
                        const Tensor& dc) {
    RnnGradients grads = {{}, dh.Clone().Contiguous(), {}, {}};
    if (is_lstm()) grads.c = dc.Clone().Contiguous();
    for (const Tensor& weight : in_.weights)
      grads.weights.push_back(weight.defined() ? Tensor::EmptyLike(weight)
                                               : weight);
    const Tensor dgates = MakeKept().gates;
    const Tensor drecurrent = is_lstm() ? dgates : MakeKept().gates;
    dy = dy.Contiguous();
    for (int64_t layer = options_.layers - 1; layer >= 0; --layer) {
      const Tensor x = layer == 0 ? in_.x : SavedOutput(result, layer - 1);
      const Tensor dx = Tensor::EmptyLike(x);
      for (int64_t d = 0; d < directions_; ++d) {
        RnnDirectionGradients<T> g;
        g.dy = dy.data<T>() + d * hidden_;
        g.dh = State(grads.h, layer, d);
        if (is_lstm()) g.dc = State(grads.c, layer, d);
        g.dx = dx.data<T>();
        g.add_to_dx = d > 0;
        g.dw_ih = Weight(grads.weights, layer, d, 0);
        g.dw_hh = Weight(grads.weights, layer, d, 1);
        g.db_ih = Weight(grads.weights, layer, d, 2);
        g.db_hh = Weight(grads.weights, layer, d, 3);
        g.dgates = dgates.data<T>();
        g.drecurrent = drecurrent.data<T>();
        g.Backward(Direction(layer, d, x, SavedOutput(result, layer),
                             SavedState(result, layer, d)));
      }
      dy = dx;
    }
    grads.x = dy;
    return grads;
  }

 private:
  bool is_lstm() const { return options_.cell == RnnCell::kLstm; }
  Tensor Empty(const Shape& shape) const {
    return Tensor::Empty(shape, {.dtype = in_.x.dtype()});
  }
  int64_t width() const { return ops::GatesOf(options_.cell) * hidden_; }

  Kept MakeKept() const {
    return {Empty({steps_, batch_, width()}),
            Empty({steps_, batch_, is_lstm() ? hidden_ : width()})};
  }

  T* State(const Tensor& states, int64_t layer, int64_t d) const {
    return states.data<T>() + (layer * directions_ + d) * batch_ * hidden_;
  }

  // Returns null for an undefined tensor.
  T* Weight(const std::vector<Tensor>& weights, int64_t layer, int64_t d,
            int64_t which) const {
    const Tensor& weight =
        weights[static_cast<size_t>((layer * directions_ + d) * 4 + which)];
    return weight.defined() ? weight.data<T>() : nullptr;
  }

  // Returns the index in `saved` at which a layer's tensors begin.
  size_t SavedAt(int64_t layer) const {
    return static_cast<size_t>(layer * (2 * directions_ + 1));
  }
  Kept SavedState(const RnnResult& result, int64_t layer, int64_t d) const {
    const size_t at = SavedAt(layer) + static_cast<size_t>(2 * d);
    return {result.saved[at], result.saved[at + 1]};
  }
  Tensor SavedOutput(const RnnResult& result, int64_t layer) const {
    return layer + 1 == options_.layers ? result.y
                                        : result.saved[SavedAt(layer + 1) - 1];
  }

  RnnDirection<T> Direction(int64_t layer, int64_t d, const Tensor& x,
                            const Tensor& y, const Kept& kept) const {
    RnnDirection<T> direction;
    direction.cell = options_.cell;
    direction.reversed = d == 1;
    direction.steps = steps_;
    direction.batch = batch_;
    direction.input = x.dim(2);
    direction.hidden = hidden_;
    direction.y_stride = directions_ * hidden_;
    direction.w_ih = Weight(in_.weights, layer, d, 0);
    direction.w_hh = Weight(in_.weights, layer, d, 1);
    direction.b_ih = Weight(in_.weights, layer, d, 2);
    direction.b_hh = Weight(in_.weights, layer, d, 3);
    direction.x = x.data<T>();
    direction.h = State(in_.h, layer, d);
    if (is_lstm()) direction.c = State(in_.c, layer, d);
    direction.y = y.data<T>() + d * hidden_;
    direction.gates = kept.gates.data<T>();
    (is_lstm() ? direction.cells : direction.recurrent) = kept.state.data<T>();
    return direction;
  }

  RnnInputs in_;
  const RnnOptions options_;
  const int64_t directions_, steps_, batch_, hidden_;
};

}  // namespace

RnnResult RnnForward(const RnnInputs& in, const RnnOptions& options,
                     bool keep) {
  return in.x.dtype() == DType::kF64 ? Run<double>(in, options).Forward(keep)
                                     : Run<float>(in, options).Forward(keep);
}

RnnGradients RnnBackward(const RnnInputs& in, const RnnResult& result,
                         const Tensor& dy, const Tensor& dh, const Tensor& dc,
                         const RnnOptions& options) {
  return in.x.dtype() == DType::kF64
             ? Run<double>(in, options).Backward(result, dy, dh, dc)
             : Run<float>(in, options).Backward(result, dy, dh, dc);
}

}  // namespace baton::cpu
