# SPDX-License-Identifier: Apache-2.0
"""The RNN-T in PyTorch: the yardstick that the integer model's accuracy is measured against.

Written from CAIMAN-ASR's published description and on top of `torch.nn.LSTM`; nothing is shared with the compiler's own
`FloatNetwork`, so that a mistake in one shows against the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gharial.checkpoint import HardwareCheckpoint
from gharial.errors import BadInput
from gharial.floating.path import Decoded, LatticePath, path_targets


class TorchRnnt:
    """A checkpoint's network on the CPU.

    Args:
        checkpoint: as `load_hardware` gives it.
        dtype: "float32" or "float64".
        max_symbols: most tokens at one encoder step.
        prefix: tokens that go through the prediction network after the start, before everything else.

    Raises:
        BadInput: PyTorch is not installed.
    """

    def __init__(
        self,
        checkpoint: HardwareCheckpoint,
        dtype: str = "float32",
        max_symbols: int = 30,
        prefix: Sequence[int] = (),
    ) -> None:
        self._torch = _import_torch()
        self._hard = (checkpoint.hard_sigmoid, checkpoint.hard_tanh)
        self._numpy = np.dtype(dtype)
        self._dtype = {"float32": self._torch.float32, "float64": self._torch.float64}[dtype]
        self._features = checkpoint.dims.features
        self._stack = checkpoint.dims.stack
        self._blank = checkpoint.dims.classes - 1
        self._max_symbols = max_symbols
        self._prefix = tuple(prefix)
        state = {name: self._tensor(array) for name, array in checkpoint.state.items()}
        self._pre_rnn = self._lstm(state, "encoder.pre_rnn.lstm.")
        self._post_rnn = self._lstm(state, "encoder.post_rnn.lstm.")
        self._dec_rnn = self._lstm(state, "prediction.dec_rnn.lstm.")
        self._embed = state["prediction.embed.weight"]
        self._joint_enc = self._linear(state, "joint_enc.")
        self._joint_pred = self._linear(state, "joint_pred.")
        self._joint_net = self._linear(state, "joint_net.2.")
        self._pad = self._tensor(checkpoint.post_pad)

    @classmethod
    def from_checkpoint(cls, checkpoint: HardwareCheckpoint, prefix: Sequence[int] = ()) -> TorchRnnt:
        """The yardstick in float32, as it is trained and published."""
        return cls(checkpoint, prefix=prefix)

    def encode(self, features: np.ndarray) -> np.ndarray:
        """joint_enc's output for a whole recording.

        Args:
            features: (T2, F) float feature vectors, normalised; T2 may be 0.

        Returns:
            (ceil(T2 / stack), J).
        """
        with self._torch.inference_mode():
            return self._encode(features).numpy()

    def predict(self, token: int | None, state: Any) -> tuple[Any, Any]:
        """One step of the prediction network.

        Args:
            token: its input; None is the start of a sequence, a vector of zeros.
            state: what the step before returned; None is the zero state.

        Returns:
            joint_pred's output (J,) for `logits`, and the new state. Neither is changed later.
        """
        with self._torch.inference_mode():
            return self._predict(token, state)

    def logits(self, encoded: np.ndarray, predicted: Any) -> np.ndarray:
        """The joint network: (V,) logits of a row (J,) of `encode` and an output of `predict`."""
        with self._torch.inference_mode():
            output: np.ndarray = self._joint(self._torch.from_numpy(encoded), predicted).numpy()
            return output

    def greedy(self, features: np.ndarray) -> Decoded:
        """Greedy decoding of a recording, (T2, F) feature vectors; a confidence is exp(log-probability)."""
        tokens: list[int] = []
        steps: list[int] = []
        confidences: list[float] = []
        with self._torch.inference_mode():
            outputs = self._encode(features)
            pred, state = self._start()
            for step in range(len(outputs)):
                for _ in range(self._max_symbols):
                    logits = self._joint(outputs[step], pred)
                    token = int(logits.argmax())
                    if token == self._blank:
                        break
                    tokens.append(token)
                    steps.append(step)
                    confidences.append(float(logits.log_softmax(-1)[token].exp()))
                    pred, state = self._predict(token, state)
        return Decoded(tokens, steps, confidences)

    def forced_logits(self, features: np.ndarray, path: LatticePath) -> np.ndarray:
        """Logits at every joint evaluation along a given path, whatever the network itself would have chosen.

        Args:
            features: (T2, F) feature vectors.
            path: (encoder step, token id) of each token.

        Returns:
            (Q, V), Q as in `path_targets`.

        Raises:
            BadInput: the path does not fit the recording.
        """
        with self._torch.inference_mode():
            outputs = self._encode(features)
            targets = path_targets(path, len(outputs), self._blank, self._max_symbols)
            rows = []
            pred, state = self._start()
            for step, target in targets:
                rows.append(self._joint(outputs[step], pred))
                if target != self._blank:
                    pred, state = self._predict(target, state)
            if not rows:
                return np.empty((0, self._blank + 1), self._numpy)
            return self._torch.stack(rows).numpy()

    def forced(self, features: np.ndarray, path: LatticePath) -> np.ndarray:
        """Best class at every joint evaluation along a path, (Q,) int64; ties go to the lowest class."""
        return self.forced_logits(features, path).argmax(axis=1)

    def _encode(self, features: np.ndarray) -> Any:
        torch = self._torch
        width = self._features
        if features.ndim != 2 or features.shape[1] != width:
            raise BadInput("features have the wrong shape", found=features.shape, expected=f"(any, {width})")
        if len(features) == 0:
            return torch.zeros((0, self._joint_enc.out_features), dtype=self._dtype)
        hidden, _ = self._pre_rnn(self._tensor(features))
        missing = -len(hidden) % self._stack
        if missing:
            hidden = torch.cat([hidden, self._pad.expand(missing, -1)])
        hidden, _ = self._post_rnn(hidden.reshape(len(hidden) // self._stack, -1))
        return self._joint_enc(hidden)

    def _start(self) -> tuple[Any, Any]:
        """joint_pred's output and the state before the first joint evaluation."""
        pred, state = self._predict(None, None)
        for token in self._prefix:
            pred, state = self._predict(token, state)
        return pred, state

    def _predict(self, token: int | None, state: Any) -> tuple[Any, Any]:
        x = self._torch.zeros_like(self._embed[0]) if token is None else self._embed[token]
        output, state = self._dec_rnn(x[None], state)
        return self._joint_pred(output[0]), state

    def _joint(self, enc: Any, pred: Any) -> Any:
        return self._joint_net(self._torch.relu(enc + pred))

    def _tensor(self, array: np.ndarray) -> Any:
        return self._torch.tensor(np.ascontiguousarray(array), dtype=self._dtype)

    def _lstm(self, state: Mapping[str, Any], prefix: str) -> Any:
        weights = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
        layers = sum(name.startswith("weight_ih_l") for name in weights)
        if layers == 0:  # an encoder may have no second part
            return lambda x: (x, None)
        rows, inputs = weights["weight_ih_l0"].shape
        if any(self._hard):
            return self._hard_lstm(weights, layers)
        lstm = self._torch.nn.LSTM(inputs, rows // 4, layers, dtype=self._dtype)
        # strict: a tensor that is missing, left over or of another shape is an error here.
        lstm.load_state_dict(weights, strict=True)
        return lstm.eval()

    def _hard_lstm(self, weights: Mapping[str, Any], layers: int) -> Any:
        """A function called as torch.nn.LSTM is, which cannot have its activations replaced."""
        torch = self._torch
        sigmoid = (lambda x: (0.5 + x / 8).clamp(0, 1)) if self._hard[0] else torch.sigmoid
        tanh = (lambda x: x.clamp(-1, 1)) if self._hard[1] else torch.tanh

        def run(x: Any, state: Any = None) -> tuple[Any, Any]:
            finals = []
            for k in range(layers):
                w_ih, w_hh, b_ih, b_hh = (
                    weights[f"{name}_l{k}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                )
                h = x.new_zeros(w_hh.shape[1]) if state is None else state[0][k]
                c = torch.zeros_like(h) if state is None else state[1][k]
                outputs = []
                for row in x:
                    i, f, g, o = (w_ih @ row + b_ih + w_hh @ h + b_hh).chunk(4)
                    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                    h = sigmoid(o) * tanh(c)
                    outputs.append(h)
                x = torch.stack(outputs)
                finals.append((h, c))
            return x, tuple(torch.stack(part) for part in zip(*finals, strict=True))

        return run

    def _linear(self, state: Mapping[str, Any], prefix: str) -> Any:
        weight, bias = state[f"{prefix}weight"], state[f"{prefix}bias"]
        linear = self._torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=self._dtype)
        linear.load_state_dict({"weight": weight, "bias": bias}, strict=True)
        return linear.eval()


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise BadInput(
            "float models need PyTorch, which is not installed", remedy="pip install gharial[float]"
        ) from error
    return torch
